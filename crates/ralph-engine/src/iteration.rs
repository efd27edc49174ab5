//! The loop: one iteration, from a fresh prompt to files on disk. It fits on a page; each step is
//! in the module that it is named after, and each looks first whether a crash left it done.

use ralph_core::event::IterationOutcome;
use ralph_core::run::{FailReason, PauseReason, RunStatus};

use crate::actions::Performed;
use crate::delivery::DeliveryOutcome;
use crate::error::RunError;
use crate::run::Run;
use crate::steps::AskOutcome;

/// Runs one iteration, or the rest of one that was interrupted. Where it sends the run is in the
/// journal's state afterwards.
pub async fn iterate(run: &mut Run) -> Result<(), RunError> {
    run.begin_iteration()?;
    if run.take_sandbox_lost() {
        // What was done and not committed is gone, so the rest of the actions would make no sense.
        run.record_commits_of_lost_sandbox().await?;
        let lost = Performed::none(IterationOutcome::SandboxLost);
        return run
            .close_iteration("the sandbox was lost".into(), lost, None)
            .await;
    }

    // One fresh session, whose only memory is files and git: of a model, or of an agent's program.
    let (summary, performed) = match run.agent() {
        None => ask_and_perform(run).await?,
        Some(agent) => run.run_agent_iteration(agent).await?,
    };

    // What really happened: files, git, tests.
    run.settle_iteration().await?;
    run.run_tests_if_changed().await?;

    // Deliver what is due, and believe in success only after the clean room.
    let delivered = run.deliver(&performed.outcome).await?;

    let reason = performed.reason.clone();
    let then = match (delivered, &performed.outcome) {
        (DeliveryOutcome::Success, _) => Some(RunStatus::Succeeded),
        (DeliveryOutcome::NeedsApproval(reason), _) => Some(RunStatus::Paused(reason)),
        (DeliveryOutcome::Unfinished, outcome) => status_after(run, outcome, reason),
    };
    run.close_iteration(summary, performed, then).await
}

/// Returns where an unfinished run goes after an iteration, if not to the next one.
fn status_after(run: &mut Run, outcome: &IterationOutcome, reason: String) -> Option<RunStatus> {
    match outcome {
        IterationOutcome::Paused => {
            Some(RunStatus::Paused(PauseReason::Model { question: reason }))
        }
        IterationOutcome::GaveUp => Some(RunStatus::Failed(FailReason::Model { reason })),
        IterationOutcome::Completed
        | IterationOutcome::ActionFailed { .. }
        | IterationOutcome::Unreadable
        | IterationOutcome::Rotated
        | IterationOutcome::StopRequested
        | IterationOutcome::OutOfBudget
        | IterationOutcome::AgentStopped { .. }
        | IterationOutcome::SandboxLost => run.status_after_agent(outcome),
    }
}

/// Asks the model and performs the actions of its reply.
async fn ask_and_perform(run: &mut Run) -> Result<(String, Performed), RunError> {
    Ok(match run.ask_model().await? {
        AskOutcome::Response(response) => {
            let performed = run.perform(&response).await?;
            run.check_claims(&response.claims).await?;
            (response.summary, performed)
        }
        AskOutcome::Unreadable => (String::new(), Performed::none(IterationOutcome::Unreadable)),
        AskOutcome::OutOfBudget => (
            String::new(),
            Performed::none(IterationOutcome::OutOfBudget),
        ),
    })
}
