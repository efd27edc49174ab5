//! The thread of a run: prepares the run, reports it, and drives it until it ends.

use std::pin::Pin;
use std::sync::Arc;
use std::thread;

use ralph_app::issues::follow_issue;
use ralph_app::runs::{ReadyRun, ResumeOutcome, UnattendedPause, pause_unattended, prepare_resume};
use ralph_app::steering::SteerReport;
use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use ralph_engine::error::RunError;
use ralph_engine::run_thread::block_on_isolated;
use ralph_engine::worker_pool::{WorkerSlot, WorkerStage};
use tokio::sync::{oneshot, watch};

use super::pool_supervisor::Supervisor;

/// How a run continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// This process works on it now.
    Started(RunId),
    /// The process that works on it received the command.
    Sent(SteerReport),
}

/// The preparation of a run, which stays on the thread of the run.
pub(super) type Preparation<T, E> = Pin<Box<dyn Future<Output = Result<Prepared<T>, E>>>>;

/// What the preparation of a run's thread leads to.
pub(super) enum Prepared<T> {
    /// A run to drive, and the result for the request.
    Run(Box<ReadyRun>, T),
    /// Only a result for the request.
    Done(T),
}

/// Opens a run that no process works on, or sends `resume` to its process.
pub(super) async fn prepare_continuation(
    run: &RunId,
    app: &App,
) -> Result<Prepared<Continuation>, AppError> {
    Ok(match Box::pin(prepare_resume(run.as_str(), app)).await? {
        ResumeOutcome::Ready(ready) => {
            let ready = Box::pin(follow_issue(*ready, app)).await;
            Prepared::Run(Box::new(ready), Continuation::Started(run.clone()))
        }
        ResumeOutcome::Sent(report) => Prepared::Done(Continuation::Sent(report)),
    })
}

/// Starts the thread of a run. Returns when the run is prepared; the thread then works until it ends.
pub(super) async fn spawn<T, E>(
    supervisor: Supervisor,
    name: &str,
    prepare: impl FnOnce(Arc<App>) -> Preparation<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<AppError> + Send + 'static,
{
    let (sender, prepared) = oneshot::channel();
    let work = move || {
        let app = supervisor.app().clone();
        let prepared = block_on_isolated(prepare(app));
        let prepared = prepared.unwrap_or_else(|error| Err(thread_error(&error).into()));
        let (run, done) = match prepared {
            Ok(Prepared::Run(run, done)) => (Some(run), Ok(done)),
            Ok(Prepared::Done(done)) => (None, Ok(done)),
            Err(error) => (None, Err(error)),
        };
        let Some(run) = run else {
            let _unreceived = sender.send(done);
            return;
        };
        match supervisor.admit(&run) {
            Ok(slot) => {
                // The run works even if the request that started it is gone.
                let _unreceived = sender.send(done);
                if let Some(slot) = slot {
                    drive(&supervisor, *run, slot);
                }
            }
            Err(error) => {
                let _unreceived = sender.send(Err(error.into()));
            }
        }
    };
    spawn_thread(name, work)?;
    prepared.await.unwrap_or_else(|_| {
        let error = RunError::Thread("it ended before the run was prepared".into());
        Err(thread_error(&error).into())
    })
}

/// Starts the thread of a run that the last server was working on. The run already has its place in the
/// queue.
pub(super) fn spawn_recovered(
    supervisor: Supervisor,
    run: RunId,
    slot: WorkerSlot,
) -> Result<(), AppError> {
    let name = run.to_string();
    spawn_thread(&name, move || {
        let app = supervisor.app().clone();
        supervisor.registry().set_stage(&run, WorkerStage::Opening);
        let opened = block_on_isolated(prepare_continuation(&run, &app));
        let why = match opened {
            Ok(Ok(Prepared::Run(ready, _))) => return drive(&supervisor, *ready, slot),
            // Another process works on it.
            Ok(Ok(Prepared::Done(_))) => return supervisor.registry().finish(&run, false),
            Ok(Err(error)) => UnattendedPause::NotOpened(error),
            Err(error) => UnattendedPause::Thread(error),
        };
        tracing::warn!(%run, ?why, "the run cannot continue");
        pause(&run, why, &app);
        supervisor.registry().finish(&run, false);
    })
}

/// Drives a run on this thread until it ends.
fn drive(supervisor: &Supervisor, run: ReadyRun, slot: WorkerSlot) {
    let id = run.journal().state().plan.run.clone();
    let span = tracing::info_span!("run", run = %id);
    let _run = span.enter();
    let (interrupt, interrupted) = watch::channel(false);
    supervisor.begin(&id, &interrupt);
    let driven = block_on_isolated(run.with_worker(slot).drive(interrupted));
    let ended = match driven {
        Ok(ended) => ended,
        Err(error) => {
            tracing::error!(%error, "the work on the run failed");
            let failed = thread_error(&error);
            pause(&id, UnattendedPause::Thread(error), supervisor.app());
            Err(failed)
        }
    };
    supervisor.end(&id, &ended);
}

/// Records why a run does not continue.
fn pause(run: &RunId, why: UnattendedPause, app: &App) {
    match block_on_isolated(pause_unattended(run, why, app)) {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::error!(%run, %error, "cannot pause the run"),
        Err(error) => tracing::error!(%run, %error, "cannot pause the run"),
    }
}

/// Records that a run crashed the server too often.
pub(super) fn quarantine(run: &RunId, crashes: u32, app: &App) {
    tracing::error!(%run, crashes, "the run crashed the server too often and is paused");
    pause(run, UnattendedPause::Crashes(crashes), app);
}

pub(super) fn spawn_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<(), AppError> {
    let spawned = thread::Builder::new()
        .name(format!("run {name}"))
        .spawn(work);
    spawned
        .map(drop)
        .map_err(|error| thread_error(&RunError::Thread(error.to_string())))
}

fn thread_error(error: &RunError) -> AppError {
    AppError::runtime(
        "the work on the run failed",
        error.to_string(),
        "see the diagnostics log",
    )
}
