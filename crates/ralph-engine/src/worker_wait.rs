//! Gives the worker of a run back while the run waits, and waits for one before it continues.

use std::time::Duration;

use ralph_core::event::RunEvent;
use ralph_core::run::{PauseReason, RunStatus};

use crate::controls::{Controls, PendingRequest};
use crate::error::RunError;
use crate::immediate_commands::handle_control_event;
use crate::journal::Journal;
use crate::worker_pool::WorkerStage;

/// How often a process checks during a wait whether it still owns the run, and whether it was
/// suspended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How the wait for the first worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerWait {
    /// The run has a worker, or its process has no limit.
    Ready,
    /// The user paused the run first.
    Paused,
}

/// Records a status, unless the run has it already. Before a status in which the run works, waits for a
/// worker; with one in which the run waits, its worker is free for others.
pub(crate) async fn enter_status(
    journal: &mut Journal,
    controls: &mut Controls,
    status: RunStatus,
) -> Result<(), RunError> {
    let stage = stage_of(&status);
    if stage.is_none() {
        wait_for_worker(journal, controls).await?;
    }
    if journal.state().status != status {
        journal.append(RunEvent::StatusChanged { status })?;
    }
    if let Some(worker) = &controls.worker {
        match stage {
            Some(stage) => worker.release(stage),
            None => worker.report(WorkerStage::Working),
        }
    }
    Ok(())
}

/// Waits until the run has a worker of its process. A pause takes effect at the next action.
pub(crate) async fn wait_for_worker(
    journal: &mut Journal,
    controls: &mut Controls,
) -> Result<(), RunError> {
    while !wait_once(journal, controls).await? {}
    Ok(())
}

/// Waits until an unopened run has a worker of its process, or the user pauses it.
pub(crate) async fn wait_for_first_worker(
    journal: &mut Journal,
    controls: &mut Controls,
) -> Result<WorkerWait, RunError> {
    if let Some(worker) = &controls.worker {
        worker.report(WorkerStage::Queued);
    }
    while controls.pending != Some(PendingRequest::Pause) {
        if wait_once(journal, controls).await? {
            if let Some(worker) = &controls.worker {
                worker.report(WorkerStage::Opening);
            }
            return Ok(WorkerWait::Ready);
        }
    }
    if let Some(worker) = &controls.worker {
        worker.release(WorkerStage::Paused);
    }
    Ok(WorkerWait::Paused)
}

/// Waits for a worker or a user command, and returns whether the run has a worker. The time does not
/// count as active time.
async fn wait_once(journal: &mut Journal, controls: &mut Controls) -> Result<bool, RunError> {
    let Some(worker) = controls.worker.clone() else {
        return Ok(true);
    };
    journal.stop_active_time();
    let has_worker = tokio::select! {
        biased;
        () = worker.acquire() => true,
        event = controls.next() => {
            handle_control_event(journal, controls, event)?;
            false
        }
        () = tokio::time::sleep(CHECK_INTERVAL) => {
            journal.check_owner()?;
            journal.report_suspension()?;
            false
        }
    };
    if has_worker {
        journal.start_active_time();
    }
    Ok(has_worker)
}

/// Returns the stage of a run that needs no worker in a status; `None` if it needs one.
fn stage_of(status: &RunStatus) -> Option<WorkerStage> {
    match status {
        RunStatus::Created | RunStatus::Preparing | RunStatus::Running | RunStatus::Verifying => {
            None
        }
        RunStatus::Paused(PauseReason::Person) => Some(WorkerStage::Paused),
        RunStatus::Paused(_)
        | RunStatus::WaitingQuota(_)
        | RunStatus::WaitingProvider(_)
        | RunStatus::WaitingCi(_)
        | RunStatus::WaitingHost(_)
        | RunStatus::Succeeded
        | RunStatus::Failed(_)
        | RunStatus::Stopped
        | RunStatus::SandboxLost => Some(WorkerStage::Waiting),
    }
}
