//! The thread of a run: prepares the run, reports it, and drives it until it ends.

use std::future::Future;
use std::pin::Pin;
use std::thread;

use ralph_app::planning;
use ralph_app::runs::{
    ApprovalMode, ReadyRun, ResumeOutcome, RunStart, confirm_sandbox, plan_start, prepare_resume,
    prepare_start, require_approval,
};
use ralph_app::steering::SteerReport;
use ralph_app::{App, AppError};
use ralph_core::id::RunId;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use super::{StartRequest, Supervisor};

/// How a run continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// This process works on it now.
    Started(RunId),
    /// The process that works on it received the command.
    Sent(SteerReport),
}

/// What the preparation of a run's thread leads to.
enum Prepared {
    Run(Box<ReadyRun>),
    Sent(SteerReport),
}

/// Creates a run on a thread of its own, and returns its id.
pub(super) async fn spawn_start(
    supervisor: Supervisor,
    start: StartRequest,
) -> Result<RunId, AppError> {
    let name = start.request.file.display().to_string();
    let worker = supervisor.clone();
    let continued = spawn(supervisor, &name, move || {
        Box::pin(async move {
            let app = worker.app().in_directory(&start.directory);
            Ok(Prepared::Run(Box::new(prepare_new(start, &app).await?)))
        })
    });
    match continued.await? {
        Continuation::Started(run) => Ok(run),
        Continuation::Sent(report) => Ok(report.run),
    }
}

/// Continues a run on a thread of its own.
pub(super) async fn spawn_resume(
    supervisor: Supervisor,
    run: RunId,
) -> Result<Continuation, AppError> {
    let worker = supervisor.clone();
    let name = run.to_string();
    spawn(supervisor, &name, move || {
        Box::pin(async move {
            match prepare_resume(run.as_str(), worker.app()).await? {
                ResumeOutcome::Ready(run) => Ok(Prepared::Run(run)),
                ResumeOutcome::Sent(report) => Ok(Prepared::Sent(report)),
            }
        })
    })
    .await
}

async fn prepare_new(start: StartRequest, app: &App) -> Result<ReadyRun, AppError> {
    let (file, task) = planning::read_task(&start.request.file, app)?;
    let questions = (app, &start.answers as _);
    let request = confirm_sandbox(start.request, &task, questions).await?;
    require_approval(&request, (&file, &task), ApprovalMode::Require, questions).await?;
    let planned = Box::pin(plan_start(&request, (file, task), app)).await?;
    let start = RunStart {
        planned,
        effort: start.effort,
        unfinished_runs: start.unfinished_runs,
        on_reserved: None,
    };
    Box::pin(prepare_start(start, app, &mut |_progress| {})).await
}

type Preparation = Pin<Box<dyn Future<Output = Result<Prepared, AppError>>>>;

/// Starts the thread of a run. Returns when the run is prepared; the thread then works until it ends.
async fn spawn(
    supervisor: Supervisor,
    name: &str,
    prepare: impl FnOnce() -> Preparation + Send + 'static,
) -> Result<Continuation, AppError> {
    let (sender, prepared) = oneshot::channel();
    let work = move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let _unreceived = sender.send(Err(thread_error(&error.to_string())));
                return;
            }
        };
        runtime.block_on(async move {
            let run = match prepare().await {
                Ok(Prepared::Run(run)) => run,
                Ok(Prepared::Sent(report)) => {
                    let _unreceived = sender.send(Ok(Continuation::Sent(report)));
                    return;
                }
                Err(error) => {
                    let _unreceived = sender.send(Err(error));
                    return;
                }
            };
            let id = run.journal().state().plan.run.clone();
            let (interrupt, interrupted) = watch::channel(false);
            supervisor.register(&id, interrupt);
            // The run works even if the request that started it is gone.
            let _unreceived = sender.send(Ok(Continuation::Started(id.clone())));
            let ended = Box::pin(run.drive(interrupted)).await;
            supervisor.finished(&id, &ended);
        });
    };
    thread::Builder::new()
        .name(format!("run {name}"))
        .spawn(work)
        .map_err(|error| thread_error(&error.to_string()))?;
    match prepared.await {
        Ok(prepared) => prepared,
        Err(_) => Err(thread_error("it ended before the run was prepared")),
    }
}

fn thread_error(why: &str) -> AppError {
    AppError::runtime(
        "cannot start the thread of a run",
        why,
        "see the diagnostics log",
    )
}
