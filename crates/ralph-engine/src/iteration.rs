//! The loop: one iteration, from a fresh prompt to files on disk. Each step is in the module of its
//! name, and first checks whether it was completed before a crash.

use ralph_core::event::IterationOutcome;
use ralph_core::run::{FailReason, PauseReason, RunStatus};

use crate::actions::{Performed, check_claims, perform};
use crate::agent::{run_agent_iteration, status_after_agent};
use crate::delivery::{DeliveryOutcome, deliver};
use crate::error::RunError;
use crate::run::Run;
use crate::steps::{
    AskOutcome, ask_model, begin_iteration, close_iteration, record_commits_of_lost_sandbox,
    run_tests_if_changed, settle_iteration,
};

/// Runs one iteration, or the rest of an interrupted one. The resulting status is in the journal's
/// state.
pub async fn iterate(run: &mut Run) -> Result<(), RunError> {
    begin_iteration(&mut run.recorder, &run.services, &mut run.scratch)?;
    if std::mem::take(&mut run.bench.is_replacement) {
        // Uncommitted work is lost, so the remaining actions would be useless.
        record_commits_of_lost_sandbox(&mut run.recorder, &run.bench).await?;
        let lost = Performed::none(IterationOutcome::SandboxLost);
        return close_iteration(run, "the sandbox was lost".into(), lost, None).await;
    }

    // One fresh session, whose only memory is files and git: of a model, or of an agent's program.
    let (summary, performed) = match run.services.agent_in_force(run.recorder.state()).cloned() {
        None => ask_and_perform(run).await?,
        Some(agent) => run_agent_iteration(run, agent).await?,
    };

    // Record the actual results: files, git, tests.
    settle_iteration(
        &mut run.recorder,
        &mut run.bench,
        &run.pinned,
        &mut run.scratch,
    )
    .await?;
    run_tests_if_changed(run).await?;

    // Deliver if due; only the clean room can confirm success.
    let delivered = deliver(run, &performed.outcome).await?;

    let reason = performed.reason.clone();
    let then = match (delivered, &performed.outcome) {
        (DeliveryOutcome::Success, _) => Some(RunStatus::Succeeded),
        (DeliveryOutcome::NeedsUser(reason), _) => Some(RunStatus::Paused(reason)),
        (DeliveryOutcome::Unfinished, outcome) => status_after(run, outcome, reason),
    };
    close_iteration(run, summary, performed, then).await
}

/// Returns the status of an unfinished run after an iteration, if it is not the next iteration.
fn status_after(run: &Run, outcome: &IterationOutcome, reason: String) -> Option<RunStatus> {
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
        | IterationOutcome::SandboxLost => {
            status_after_agent(&run.recorder, &run.services, &run.scratch, outcome)
        }
    }
}

/// Asks the model and performs the actions of its reply.
async fn ask_and_perform(run: &mut Run) -> Result<(String, Performed), RunError> {
    Ok(match ask_model(run).await? {
        AskOutcome::Response(response) => {
            let performed = perform(run, &response).await?;
            check_claims(run, &response.claims).await?;
            (response.summary, performed)
        }
        AskOutcome::Unreadable => (String::new(), Performed::none(IterationOutcome::Unreadable)),
        AskOutcome::OutOfBudget => (
            String::new(),
            Performed::none(IterationOutcome::OutOfBudget),
        ),
        AskOutcome::Rotated => (String::new(), Performed::none(IterationOutcome::Rotated)),
    })
}
