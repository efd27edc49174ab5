//! The loop: one iteration, from a fresh prompt to files on disk. It fits on a page; each step is
//! in the module that it is named after, and each looks first whether a crash left it done.

use ralph_core::event::IterationOutcome;
use ralph_core::run::{FailReason, PauseReason, RunStatus};

use crate::actions::Performed;
use crate::error::RunError;
use crate::run::Run;

/// Runs one iteration, or the rest of one that was interrupted. Where it sends the run is in the
/// journal's state afterwards.
pub async fn iterate(run: &mut Run) -> Result<(), RunError> {
    run.begin_iteration()?;

    // One fresh model session: the prompt is made of files and git, the reply of actions.
    let (summary, performed) = match run.ask().await? {
        Some(response) => {
            let performed = run.perform(&response).await?;
            run.check_claims(&response.claims).await?;
            (response.summary, performed)
        }
        None => (String::new(), Performed::unreadable()),
    };

    // What really happened: files, git, tests.
    run.settle().await?;
    run.test().await?;

    // Deliver what is due, and believe in success only after the clean room.
    let succeeded = run.deliver(&performed.outcome).await?;

    let reason = performed.reason.clone();
    let then = match &performed.outcome {
        _ if succeeded => Some(RunStatus::Succeeded),
        IterationOutcome::Paused => {
            Some(RunStatus::Paused(PauseReason::Model { question: reason }))
        }
        IterationOutcome::GaveUp => Some(RunStatus::Failed(FailReason::Model { reason })),
        IterationOutcome::Completed
        | IterationOutcome::ActionFailed { .. }
        | IterationOutcome::Unreadable
        | IterationOutcome::Rotated
        | IterationOutcome::StopRequested
        | IterationOutcome::OutOfBudget => None,
    };
    run.close_iteration(summary, performed, then).await
}
