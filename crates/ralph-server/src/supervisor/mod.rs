//! Works on runs: starts them, continues them, and parks them when the server stops.
//!
//! Each run has a thread and a runtime of its own, so a run that panics or waits for its disk does not
//! affect the others or the requests.

mod start_request;
mod supervised_run;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_core::run::RunStatus;
use tokio::sync::watch;

pub(crate) use start_request::{GivenAnswers, StartRequest};
pub(crate) use supervised_run::Continuation;

/// Works on the runs of this process; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    shared: Arc<SupervisorState>,
}

struct SupervisorState {
    app: Arc<App>,
    workers: usize,
    runs: Mutex<BTreeMap<RunId, SupervisedRun>>,
}

/// A run that a thread of this process works on.
struct SupervisedRun {
    /// Parks the run when it becomes true.
    interrupt: watch::Sender<bool>,
}

/// The runs of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueReport {
    /// The number of runs that work at the same time.
    pub(crate) workers: usize,
    /// The runs that have a worker.
    pub(crate) working: Vec<RunId>,
    /// The runs that wait for a worker, the next one first.
    pub(crate) waiting: Vec<RunId>,
}

impl Supervisor {
    pub(crate) fn new(app: Arc<App>, workers: usize) -> Self {
        Self {
            shared: Arc::new(SupervisorState {
                app,
                workers,
                runs: Mutex::default(),
            }),
        }
    }

    /// Creates a run and works on it. Returns its id as soon as its journal exists.
    pub(crate) async fn start(&self, start: StartRequest) -> Result<RunId, AppError> {
        supervised_run::spawn_start(self.clone(), start).await
    }

    /// Continues a run that no process works on, or sends `resume` to its process.
    pub(crate) async fn resume(&self, run: &RunId) -> Result<Continuation, AppError> {
        supervised_run::spawn_resume(self.clone(), run.clone()).await
    }

    /// Returns the runs of this process.
    pub(crate) fn queue(&self) -> QueueReport {
        QueueReport {
            workers: self.shared.workers,
            working: self.lock().keys().cloned().collect(),
            waiting: Vec::new(),
        }
    }

    fn app(&self) -> &App {
        &self.shared.app
    }

    fn register(&self, run: &RunId, interrupt: watch::Sender<bool>) {
        self.lock().insert(run.clone(), SupervisedRun { interrupt });
    }

    fn finished(&self, run: &RunId, ended: &Result<RunStatus, AppError>) {
        self.lock().remove(run);
        match ended {
            Ok(status) => {
                tracing::info!(%run, status = status.as_str(), "the work on the run ended")
            }
            Err(error) => tracing::warn!(%run, %error, "the work on the run failed"),
        }
    }

    /// Asks all runs to park.
    pub(crate) fn interrupt_all(&self) {
        for run in self.lock().values() {
            run.interrupt.send_replace(true);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<RunId, SupervisedRun>> {
        self.shared
            .runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SupervisorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorState")
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
