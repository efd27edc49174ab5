//! What an agent's work came to: the boxes it says are done, and where the run goes from there.

use ralph_core::budget::{self, Budget};
use ralph_core::event::IterationOutcome;
use ralph_core::ports::{AgentEnd, AgentReport};
use ralph_core::run::{FailReason, PauseReason, RunStatus};

use crate::actions::Performed;
use crate::error::{OUTAGE_HINT, RunError};
use crate::run::Run;

/// After so many iterations in a row without any change a person should look.
const IDLE_LIMIT: u32 = 3;

impl Run {
    /// Looks at what the agent says is done, and says how the iteration went.
    pub(super) async fn settle_agent_session(
        &mut self,
        end: AgentEnd,
        report: AgentReport,
    ) -> Result<(String, Performed), RunError> {
        let mut claims = self.agent_claims().await?;
        let obstacle = self.agent_obstacle().await?;
        if end == AgentEnd::Finished && claims.checkboxes_checked.is_empty() && obstacle.is_none() {
            let tree = self.inspect_work_tree().await?;
            if tree.head.as_ref() == Some(&self.state().head) && tree.entries.is_empty() {
                claims = self.claim_all_boxes();
            }
        }
        self.check_claims(&claims).await?;
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

    /// Returns where the agent's end sends the run, if not to the next iteration.
    pub(crate) fn status_after_agent(&self, outcome: &IterationOutcome) -> Option<RunStatus> {
        let agent = self.services.agent.as_ref()?.name();
        if *outcome == IterationOutcome::Rotated {
            // A person has seen to it.
            return None;
        }
        let limits = self.pinned.contract().limits();
        if budget::exhausted(&limits, &self.spent()).is_some() {
            // Before the next iteration it is looked whether a person has raised it.
            return None;
        }
        let open = self.state().open.as_ref();
        match open.and_then(|open| open.agent_end.as_ref()) {
            Some(AgentEnd::Unauthorized { why }) => {
                let plan = self.state().plan.agent.as_ref();
                let command = plan.and_then(|plan| plan.renew.as_deref());
                let command = command.unwrap_or("ralph store-token");
                return Some(paused_as_broken(
                    format!("the credential of `{agent}` was refused: {why}"),
                    format!("store a valid one with `{command}`, then `ralph resume`"),
                ));
            }
            Some(AgentEnd::Quota { why, .. }) => {
                return Some(paused_as_broken(
                    format!("the usage limit of `{agent}` does not end: {why}"),
                    "look at the limits of its account, then `ralph resume`".into(),
                ));
            }
            Some(AgentEnd::Overloaded { why }) => {
                return Some(paused_as_broken(
                    format!("the provider of `{agent}` is not available: {why}"),
                    OUTAGE_HINT.into(),
                ));
            }
            Some(AgentEnd::OutOfBudget) => {
                let budget = self.tightest_budget();
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
        let is_idle = outcome.is_attributable_to_model()
            && !self.scratch.changed
            && self.scratch.newly_ticked == 0;
        (is_idle && self.state().idle + 1 >= IDLE_LIMIT).then(|| {
            paused_as_broken(
                format!("`{agent}` changed nothing in {IDLE_LIMIT} iterations"),
                "look at `ralph logs`, make the task clearer, then `ralph resume`".into(),
            )
        })
    }

    /// Returns the budget that a refused call would have exceeded: the one that is used up, or else
    /// the one that is used most.
    fn tightest_budget(&self) -> Budget {
        let limits = self.pinned.contract().limits();
        let spent = self.spent();
        budget::exhausted(&limits, &spent).unwrap_or_else(|| {
            let uses = budget::budget_uses(&limits, &spent);
            let metered = uses.iter().filter(|used| match used.budget {
                Budget::Cost | Budget::Tokens => true,
                Budget::Iterations | Budget::WallTime => false,
            });
            metered
                .max_by(|one, other| one.share.total_cmp(&other.share))
                .map_or(Budget::Cost, |used| used.budget)
        })
    }
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
        AgentEnd::Stalled => stopped("the agent did nothing any more"),
        AgentEnd::TimedOut => stopped("the agent's time was up"),
    }
}

fn paused_as_broken(what: String, fix: String) -> RunStatus {
    RunStatus::Paused(PauseReason::Broken { what, fix })
}
