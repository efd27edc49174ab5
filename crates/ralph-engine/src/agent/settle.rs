//! Settles an agent's work: checks the boxes that it claims and decides how the run continues.

use ralph_core::budget::{self, Budget};
use ralph_core::event::IterationOutcome;
use ralph_core::ports::{AgentEnd, AgentReport};
use ralph_core::run::{FailReason, PauseReason, RunStatus};

use super::blocked::agent_obstacle;
use super::spec_marks::spec_marks;
use super::ticks::{agent_claims, claim_all_boxes};
use crate::actions::Performed;
use crate::actions::check_claims;
use crate::error::{OUTAGE_HINT, RunError};
use crate::recorder::Recorder;
use crate::run::Run;
use crate::services::Services;
use crate::steps::IterationScratch;
use crate::steps::inspect_work_tree;

/// The run pauses after this many iterations in a row without any change.
const IDLE_LIMIT: u32 = 3;

/// Checks the claims of the agent and returns the outcome of the iteration.
pub(super) async fn settle_agent_session(
    run: &mut Run,
    end: AgentEnd,
    report: AgentReport,
) -> Result<(String, Performed), RunError> {
    let mut claims = agent_claims(&run.recorder, &run.bench, &run.pinned).await?;
    let marks = spec_marks(&run.recorder, &run.bench).await?;
    claims.checkboxes_checked.extend(marks.claimed);
    let obstacle = agent_obstacle(&run.recorder, &run.bench).await?;
    let obstacle = obstacle.or(marks.obstacle);
    if end == AgentEnd::Finished && claims.checkboxes_checked.is_empty() && obstacle.is_none() {
        let tree = inspect_work_tree(&mut run.recorder, &mut run.bench, &run.pinned).await?;
        if tree.head.as_ref() == Some(&run.recorder.state().head) && tree.entries.is_empty() {
            claims = claim_all_boxes(&run.recorder, &run.pinned);
        }
    }
    check_claims(run, &claims).await?;
    let done = usize::from(end == AgentEnd::Finished);
    let outcome = match &obstacle {
        Some(_) if end == AgentEnd::Finished => IterationOutcome::Paused,
        Some(_) | None => outcome(end),
    };
    let performed = Performed {
        reason: obstacle.unwrap_or_default(),
        total: 1,
        succeeded: done,
        ..Performed::none(outcome)
    };
    Ok((report.summary, performed))
}

/// Returns the status that the agent's end leads to, if the run does not continue.
pub(crate) fn status_after_agent(
    recorder: &Recorder,
    services: &Services,
    scratch: &IterationScratch,
    outcome: &IterationOutcome,
) -> Option<RunStatus> {
    let agent = services.agent_in_force(recorder.state())?.name();
    if *outcome == IterationOutcome::Rotated {
        // The user asked for a fresh iteration, whatever the end of the agent was.
        return None;
    }
    if recorder.exhausted_budget().is_some() {
        // Before the next iteration the run checks whether the user has raised the budget.
        return None;
    }
    let open = recorder.state().open.as_ref();
    match open.and_then(|open| open.agent_end.as_ref()) {
        Some(AgentEnd::Unauthorized { why }) => {
            let plan = recorder.state().agent_in_force();
            let command = plan.and_then(|plan| plan.renew.as_deref());
            let command = command.unwrap_or("ralph store-token");
            return Some(paused_as_broken(
                format!("the credential of `{agent}` was refused: {why}"),
                format!("store a valid one with `{command}`, then `ralph resume`"),
            ));
        }
        Some(AgentEnd::Quota { why, .. }) => {
            return Some(paused_as_broken(
                format!("the usage limit of `{agent}` is still reached: {why}"),
                "check the limits of its account, then `ralph resume`".into(),
            ));
        }
        Some(AgentEnd::Overloaded { why }) => {
            return Some(paused_as_broken(
                format!("the provider of `{agent}` is not available: {why}"),
                OUTAGE_HINT.into(),
            ));
        }
        Some(AgentEnd::OutOfBudget) => {
            let budget = tightest_budget(recorder);
            return Some(RunStatus::Failed(FailReason::Budget { budget }));
        }
        Some(
            AgentEnd::Finished
            | AgentEnd::GaveUp { .. }
            | AgentEnd::Stalled
            | AgentEnd::TimedOut
            | AgentEnd::Halted
            | AgentEnd::Crashed { .. },
        )
        | None => {}
    }
    let is_idle =
        outcome.is_attributable_to_model() && !scratch.changed && scratch.newly_ticked == 0;
    (is_idle && recorder.state().idle + 1 >= IDLE_LIMIT).then(|| {
        paused_as_broken(
            format!("`{agent}` changed nothing in {IDLE_LIMIT} iterations"),
            "read `ralph logs`, make the task clearer, then `ralph resume`".into(),
        )
    })
}

/// Returns the budget that a refused call would have exceeded: the one that is used up, or else the
/// one with the highest use.
fn tightest_budget(recorder: &Recorder) -> Budget {
    let limits = recorder.limits();
    let spent = recorder.spent();
    budget::exhausted(limits, &spent).unwrap_or_else(|| {
        let uses = budget::budget_uses(limits, &spent);
        let metered = uses.iter().filter(|used| match used.budget {
            Budget::Cost | Budget::Tokens => true,
            Budget::Iterations | Budget::WallTime => false,
        });
        metered
            .max_by(|one, other| one.share.total_cmp(&other.share))
            .map_or(Budget::Cost, |used| used.budget)
    })
}

fn outcome(end: AgentEnd) -> IterationOutcome {
    let stopped = |why: &str| IterationOutcome::AgentStopped {
        why: why.to_owned(),
    };
    match end {
        AgentEnd::Finished => IterationOutcome::Completed,
        AgentEnd::OutOfBudget => IterationOutcome::OutOfBudget,
        AgentEnd::Halted => IterationOutcome::Rotated,
        AgentEnd::GaveUp { why }
        | AgentEnd::Unauthorized { why }
        | AgentEnd::Quota { why, .. }
        | AgentEnd::Overloaded { why }
        | AgentEnd::Crashed { why } => stopped(&why),
        AgentEnd::Stalled => stopped("the agent stopped producing output"),
        AgentEnd::TimedOut => stopped("the agent timed out"),
    }
}

fn paused_as_broken(what: String, fix: String) -> RunStatus {
    RunStatus::Paused(PauseReason::Broken { what, fix })
}
