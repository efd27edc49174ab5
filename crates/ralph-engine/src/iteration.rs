//! The loop: one iteration, from a fresh prompt to files on disk. It fits on a page; each step is
//! in the module that it is named after, and each looks first whether a crash left it done.

use ralph_core::event::IterationOutcome;
use ralph_core::run::{FailReason, PauseReason, RunStatus};

use crate::actions::Performed;
use crate::error::RunError;
use crate::run::Run;

/// What follows an iteration.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Another one.
    Iterate,
    /// The run stands somewhere else now.
    End(RunStatus),
}

/// Runs one iteration, or the rest of one that was interrupted.
pub async fn iterate(run: &mut Run) -> Result<Next, RunError> {
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
    let finished = run.deliver(&performed.outcome).await?;

    let next = match (&performed.outcome, finished) {
        (_, true) => Next::End(RunStatus::Succeeded),
        (IterationOutcome::Paused, false) => Next::End(RunStatus::Paused(PauseReason::Model {
            question: performed.reason.clone(),
        })),
        (IterationOutcome::GaveUp, false) => Next::End(RunStatus::Failed(FailReason::Model {
            reason: performed.reason.clone(),
        })),
        _ => Next::Iterate,
    };
    run.close_iteration(summary, performed).await?;
    Ok(next)
}
