//! A run that can be driven.

use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::event::{CommandEvent, RunEvent};
use ralph_core::run::{Command, RunStatus};
use ralph_core::task::RunMode;
use ralph_engine::error::RunError;
use ralph_engine::journal::{Journal, JournalError};
use ralph_engine::run::{self, Services};
use ralph_engine::store::RunDir;
use ralph_engine::worker_pool::WorkerSlot;
use tokio::sync::watch;
use tracing::Instrument as _;

use super::measured_run::MeasuredRun;
use super::notify::Notifier;
use crate::error::AppError;
use crate::telemetry::Telemetry;

/// A run whose journal is open and whose services are connected.
pub struct ReadyRun {
    pub(crate) dir: RunDir,
    pub(crate) journal: Journal,
    pub(crate) services: Services,
    pub(crate) notifier: Notifier,
    pub(crate) observer: Option<Box<dyn RunObserver>>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// Follows a run while it is driven, and receives its last records before [`ReadyRun::drive`] returns.
#[async_trait]
pub trait RunObserver: Send {
    /// Follows the run until `latest`, the number of its last record, is closed.
    async fn follow(self: Box<Self>, dir: RunDir, latest: watch::Receiver<u64>);
}

impl ReadyRun {
    /// Returns the run's directory.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the run's journal, which a front end can follow.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the notifier of the run's end, whose bell a front end rings.
    pub fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// Limits the work on the run to the time in which it has this worker.
    #[must_use]
    pub fn with_worker(mut self, worker: WorkerSlot) -> Self {
        self.services.worker = Some(Arc::new(worker));
        self
    }

    /// Requests a mode for a new run, as `ralph mode` does before its first iteration.
    pub fn request_mode(&mut self, mode: RunMode) -> Result<(), AppError> {
        let command = Command::Mode { mode };
        // The task has this mode already.
        if self.journal.state().rejection_reason(&command).is_some() {
            return Ok(());
        }
        self.journal.append(CommandEvent::CommandReceived {
            id: "start".to_owned(),
            command,
            refused: None,
        })?;
        self.journal.append(RunEvent::ModeChanged { mode })?;
        Ok(())
    }

    /// Adds an observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Box<dyn RunObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Drives the run until it ends, waits for the user or is interrupted, then sends the
    /// notifications.
    pub async fn drive(self, interrupted: watch::Receiver<bool>) -> Result<RunStatus, AppError> {
        let dir = self.dir.clone();
        let span = tracing::info_span!("run", run = %self.journal.state().plan.run);
        // Boxed: the future contains the whole run machine. A process with one run drives it on its own
        // thread; `ralph_engine::run_thread` gives each of several runs a thread.
        let latest = self.journal.latest();
        let measured = MeasuredRun::new(&dir, &self.journal, self.telemetry);
        let driven = Box::pin(run::drive(
            self.dir,
            self.journal,
            self.services,
            interrupted,
        ))
        .instrument(span);
        let observer = self.observer;
        let measuring = measured.follow(latest.clone());
        let following = async {
            if let Some(observer) = observer {
                observer.follow(dir.clone(), latest).await;
            }
        };
        let (ended, (), ()) = tokio::join!(driven, following, measuring);
        match &ended {
            Ok(status) => self.notifier.notify_status(&dir, status).await,
            // Another process works on the run.
            Err(RunError::Journal(JournalError::Lost { .. })) => {}
            Err(error) => self.notifier.notify_error(&dir, error.to_string()).await,
        }
        ended.map_err(|error| run_failed(&dir, error))
    }
}

fn run_failed(dir: &RunDir, error: RunError) -> AppError {
    if let RunError::Journal(lost @ JournalError::Lost { .. }) = error {
        return lost.into();
    }
    let name = dir.root().file_name();
    let run = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    AppError::runtime(
        format!("cannot continue run `{run}`"),
        error.to_string(),
        error.hint(),
    )
}
