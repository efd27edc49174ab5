//! The entry point of the supervisor.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ralph_app::runs::ReadyRun;
use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_core::run::{PauseReason, RunStatus};
use ralph_engine::worker_pool::{WorkerPool, WorkerSlot};
use tokio::sync::watch;

use super::idempotency::{ActiveRequest, IdempotencyKey, RequestRecord, Requests};
use super::prepare::{self, StartError, StartPreview, Started};
use super::recovery;
use super::registry::{QueueReport, Registry};
use super::run_work::{self, Continuation, Prepared, prepare_continuation};
use super::start_request::StartRequest;
use crate::app_thread::call_app;
use crate::server::STOP_TIMEOUT;

/// The most runs of a server, with and without a worker.
const MAX_RUNS: usize = 1_000;

/// Works on the runs of this process; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    shared: Arc<SupervisorState>,
}

struct SupervisorState {
    app: Arc<App>,
    pool: WorkerPool,
    registry: Registry,
    requests: Requests,
    is_stopping: AtomicBool,
}

impl Supervisor {
    /// Creates the supervisor of a state directory, which this process has locked.
    pub(crate) fn new(app: Arc<App>, workers: usize) -> Result<Self, AppError> {
        let state = app.state_dir()?;
        let pool = WorkerPool::new(workers);
        Ok(Self {
            shared: Arc::new(SupervisorState {
                registry: Registry::new(state.root(), pool.clone()),
                requests: Requests::new(state.root()),
                pool,
                app,
                is_stopping: AtomicBool::new(false),
            }),
        })
    }

    /// Continues the runs of the last server, in the background.
    pub(crate) fn resume_runs(&self) -> Result<(), AppError> {
        recovery::resume_runs(self)
    }

    /// Creates a run and works on it. Returns as soon as its journal exists.
    pub(crate) async fn start(
        &self,
        start: StartRequest,
        key: Option<IdempotencyKey>,
    ) -> Result<Result<Started, RequestRecord>, StartError> {
        self.require_room()?;
        let request = match key {
            Some(key) => match self.begin_request(key)? {
                Ok(request) => Some(request),
                Err(RequestRecord::Created(run)) => return Ok(Ok(Started::Repeated(run))),
                Err(record) => return Ok(Err(record)),
            },
            None => None,
        };
        let name = start.source.name();
        let supervisor = self.clone();
        let started = run_work::spawn(self.clone(), &name, move |app| {
            Box::pin(async move { supervisor.prepare_start(start, request, &app).await })
        });
        started.await.map(Ok)
    }

    async fn prepare_start(
        &self,
        start: StartRequest,
        request: Option<ActiveRequest>,
        app: &App,
    ) -> Result<Prepared<Started>, StartError> {
        let request = Arc::new(request);
        let reserved = Arc::new(std::sync::Mutex::new(None));
        let (registry, recorded, run_reserved) = (
            self.shared.registry.clone(),
            request.clone(),
            reserved.clone(),
        );
        let on_reserved = Box::new(move |run: &RunId| {
            // The next server continues the run, even if this one ends before the response.
            registry.add(run)?;
            *run_reserved
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(run.clone());
            if let Some(request) = &*recorded {
                request.record(run)?;
            }
            Ok(())
        });
        let prepared = prepare::prepare_new(start, app, on_reserved).await;
        let reserved = reserved
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        match prepared {
            Ok(prepared) => {
                let run = prepared.run.journal().state().plan.run.clone();
                if let Some(request) = request.as_ref().as_ref().filter(|_| !prepared.is_new) {
                    request.record(&run).map_err(AppError::from)?;
                }
                let started = if prepared.is_new {
                    Started::Created(run)
                } else {
                    Started::Continued(run)
                };
                Ok(Prepared::Run(prepared.run, started))
            }
            Err(error) => {
                if let Some(run) = reserved {
                    self.shared.registry.finish(&run, false);
                }
                Err(error)
            }
        }
    }

    /// Returns the plan of a request, with everything that prevents its start.
    pub(crate) async fn preview(&self, start: StartRequest) -> Result<StartPreview, StartError> {
        let app = self.shared.app.clone();
        let preview = call_app(move || async move { Ok(prepare::preview(start, &app).await) });
        preview.await?
    }

    /// Continues a run that no process works on, or sends `resume` to its process.
    pub(crate) async fn resume(&self, run: &RunId) -> Result<Continuation, AppError> {
        self.require_room()?;
        let id = run.clone();
        run_work::spawn(self.clone(), run.as_str(), move |app| {
            Box::pin(async move { prepare_continuation(&id, &app).await })
        })
        .await
    }

    /// Returns the runs of this process.
    pub(crate) fn queue(&self) -> QueueReport {
        self.shared.registry.report()
    }

    /// Returns the position of a run in the queue, from 1; none if it does not wait for a worker.
    pub(crate) fn queue_position(&self, run: &RunId) -> Option<usize> {
        self.shared.pool.runs().position(run)
    }

    /// Parks all runs, and waits until they are parked, but not forever.
    pub(crate) async fn shut_down(&self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.shared.registry.interrupt_all();
        let mut live = self.shared.registry.live();
        let parked = tokio::time::timeout(STOP_TIMEOUT, live.wait_for(|live| *live == 0));
        if parked.await.is_ok() {
            tracing::info!("all runs are parked");
        } else {
            let runs = *self.shared.registry.live().borrow();
            tracing::warn!(
                runs,
                "some runs are not parked; the next server continues them"
            );
        }
    }

    pub(super) fn app(&self) -> &Arc<App> {
        &self.shared.app
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.shared.is_stopping.load(Ordering::SeqCst)
    }

    /// Adds a run to the end of the queue. Returns none if the server stops: the next one continues the
    /// run.
    pub(super) fn admit(&self, run: &ReadyRun) -> Result<Option<WorkerSlot>, AppError> {
        let id = &run.journal().state().plan.run;
        self.shared.registry.add(id)?;
        Ok((!self.is_stopping()).then(|| self.enqueue(id)))
    }

    /// Gives a registered run its place in the queue.
    pub(super) fn enqueue(&self, run: &RunId) -> WorkerSlot {
        let (registry, id) = (self.shared.registry.clone(), run.clone());
        let on_stage = Box::new(move |stage| registry.set_stage(&id, stage));
        self.shared.pool.enqueue(run.clone(), on_stage)
    }

    /// Records that a thread drives a run.
    pub(super) fn begin(&self, run: &RunId, interrupt: &watch::Sender<bool>) {
        self.shared.registry.set_live(run, interrupt.clone());
        if self.is_stopping() {
            // The server began to stop in the meantime.
            interrupt.send_replace(true);
        }
    }

    /// Records the end of the work on a run. A run that only the end of the server interrupted continues
    /// with the next one.
    pub(super) fn end(&self, run: &RunId, ended: &Result<RunStatus, AppError>) {
        let registry = &self.shared.registry;
        let is_interrupted = matches!(ended, Ok(RunStatus::Paused(PauseReason::Interrupted)));
        let is_kept = self.is_stopping() && is_interrupted && !registry.is_paused(run);
        registry.finish(run, is_kept);
        match ended {
            Ok(status) => {
                tracing::info!(%run, status = status.as_str(), "the work on the run ended");
            }
            Err(error) => tracing::warn!(%run, %error, "the work on the run failed"),
        }
    }

    fn begin_request(
        &self,
        key: IdempotencyKey,
    ) -> Result<Result<ActiveRequest, RequestRecord>, AppError> {
        let state = self.shared.app.state_dir()?;
        let exists = |run: &RunId| state.run(run).journal().exists();
        Ok(self.shared.requests.begin(key, exists)?)
    }

    fn require_room(&self) -> Result<(), AppError> {
        if self.is_stopping() {
            return Err(AppError::runtime(
                "cannot start a run",
                "the server stops",
                "try again when it is started again",
            ));
        }
        if self.shared.registry.len() >= MAX_RUNS {
            return Err(AppError::runtime(
                "cannot start a run",
                format!("the server has {MAX_RUNS} unfinished runs"),
                "stop some of them",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for SupervisorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorState")
            .field("workers", &self.pool.workers())
            .finish_non_exhaustive()
    }
}
