//! One iteration of an agent: it is let work, again where that helps, and what it did is settled.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget;
use ralph_core::event::IterationOutcome;
use ralph_core::outage::{Outage, OutagePolicy, OutageStep};
use ralph_core::ports::{Agent, AgentEnd, AgentReport};

use super::session::Worked;
use crate::actions::Performed;
use crate::control::Wish;
use crate::error::RunError;
use crate::run::Run;
use crate::steps::quota;
use crate::steps::waiting::{Awaited, chance};

/// What happens after an agent has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    /// What it did is looked at.
    Settle,
    /// It is started again at once: what ended it was not its doing.
    AtOnce,
    /// It is started again after a wait for its provider or for the end of a usage limit.
    After(Awaited, Duration),
}

/// How often a session that got answers before its provider failed starts a new count of the outage.
const MAX_RECOVERIES: u32 = 3;

/// What was tried in an iteration.
#[derive(Debug)]
struct Tries {
    outage: Outage,
    limits: u32,
    broken: u32,
    recoveries: u32,
}

impl Tries {
    fn new(policy: OutagePolicy) -> Self {
        Self {
            outage: Outage::new(policy),
            limits: 0,
            broken: 0,
            recoveries: 0,
        }
    }

    /// Decides what follows an end.
    fn next(&mut self, worked: &Worked) -> Next {
        match &worked.end {
            AgentEnd::Quota { wait, .. } => {
                self.outage.reset();
                self.limits += 1;
                let wait = quota::wait(*wait, self.limits);
                wait.map_or(Next::Settle, |wait| Next::After(Awaited::Quota, wait))
            }
            AgentEnd::Overloaded { .. } => {
                if worked.report.usage.total() > 0 && self.recoveries < MAX_RECOVERIES {
                    // Its provider answered before: this is another outage. A session that always fails at
                    // the same request must not repeat for ever.
                    self.recoveries += 1;
                    self.outage.reset();
                }
                match self.outage.agent_failed(chance()) {
                    OutageStep::Wait(wait) | OutageStep::Retry(wait) => {
                        Next::After(Awaited::Provider, wait)
                    }
                    OutageStep::GiveUp => Next::Settle,
                }
            }
            AgentEnd::Crashed { .. } if worked.broke_off && self.broken == 0 => {
                self.broken += 1;
                Next::AtOnce
            }
            AgentEnd::Finished
            | AgentEnd::GaveUp { .. }
            | AgentEnd::Unauthorized { .. }
            | AgentEnd::OutOfBudget
            | AgentEnd::Stalled
            | AgentEnd::TimedOut
            | AgentEnd::Halted
            | AgentEnd::Crashed { .. } => Next::Settle,
        }
    }
}

impl Run {
    /// Lets the agent work and returns its last words with how it went.
    pub(crate) async fn work_with_agent(
        &mut self,
        agent: Arc<dyn Agent>,
    ) -> Result<(String, Performed), RunError> {
        if let Some((end, report)) = self.work_before_restart() {
            return self.settle_agent(end, report).await;
        }
        let mut tries = Tries::new(self.outside.outage);
        loop {
            let limits = self.pinned.contract().limits();
            if budget::exhausted(&limits, &self.spent()).is_some() {
                let none = Performed::nothing(IterationOutcome::OutOfBudget);
                return Ok((String::new(), none));
            }
            let worked = self.let_work(&*agent).await?;
            self.warn_about_budgets()?;
            match tries.next(&worked) {
                Next::Settle => {
                    if worked.end == AgentEnd::Halted {
                        // A pause is waited out before anything else is done.
                        self.boundary().await?;
                    }
                    return self.settle_agent(worked.end, worked.report).await;
                }
                Next::AtOnce => {}
                Next::After(awaited, wait) => {
                    self.wait_for_model(awaited, wait, self.reason(&worked.end))
                        .await?;
                }
            }
            if self.control.wish == Some(Wish::Rotate) {
                return self.settle_agent(AgentEnd::Halted, worked.report).await;
            }
        }
    }

    /// Returns how the agent ended that a process before this one has seen to its end.
    fn work_before_restart(&self) -> Option<(AgentEnd, AgentReport)> {
        let open = self.state().open.as_ref()?;
        let end = open.agent_end.clone()?;
        let is_over = match end {
            AgentEnd::Finished | AgentEnd::GaveUp { .. } | AgentEnd::Halted => true,
            AgentEnd::Unauthorized { .. }
            | AgentEnd::Quota { .. }
            | AgentEnd::Overloaded { .. }
            | AgentEnd::OutOfBudget
            | AgentEnd::Stalled
            | AgentEnd::TimedOut
            | AgentEnd::Crashed { .. } => false,
        };
        let report = AgentReport {
            summary: open.agent_summary.clone(),
            ..AgentReport::default()
        };
        is_over.then_some((end, report))
    }

    /// Returns why the next session of an agent has to wait.
    fn reason(&self, end: &AgentEnd) -> String {
        let agent = self.outside.agent.as_ref().map_or("", |agent| agent.name());
        let why = why(end);
        if matches!(end, AgentEnd::Overloaded { .. }) {
            return format!("the provider of `{agent}` is not available: {why}");
        }
        why
    }

    /// Returns the agent that works on this run, if one does.
    pub(crate) fn agent(&self) -> Option<Arc<dyn Agent>> {
        self.outside.agent.clone()
    }
}

/// Returns the reason that an end has.
fn why(end: &AgentEnd) -> String {
    match end {
        AgentEnd::GaveUp { why }
        | AgentEnd::Unauthorized { why }
        | AgentEnd::Quota { why, .. }
        | AgentEnd::Overloaded { why }
        | AgentEnd::Crashed { why } => why.clone(),
        AgentEnd::Finished
        | AgentEnd::OutOfBudget
        | AgentEnd::Stalled
        | AgentEnd::TimedOut
        | AgentEnd::Halted => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: AgentEnd, broke_off: bool) -> Worked {
        Worked {
            end,
            report: AgentReport::default(),
            broke_off,
        }
    }

    #[test]
    fn an_agent_is_started_again_only_where_that_can_help() {
        let why = || "w".to_owned();
        let crash = || AgentEnd::Crashed { why: why() };
        let quota = |wait| AgentEnd::Quota { why: why(), wait };
        let minutes = Duration::from_mins;
        let limit = |wait| Next::After(Awaited::Quota, minutes(wait));
        for (ends, expected) in [
            (vec![ended(AgentEnd::Finished, false)], vec![Next::Settle]),
            (vec![ended(AgentEnd::Halted, false)], vec![Next::Settle]),
            (vec![ended(AgentEnd::Stalled, false)], vec![Next::Settle]),
            (
                vec![ended(AgentEnd::OutOfBudget, false)],
                vec![Next::Settle],
            ),
            (
                vec![ended(AgentEnd::Unauthorized { why: why() }, false)],
                vec![Next::Settle],
            ),
            (vec![ended(crash(), false)], vec![Next::Settle]),
            (
                vec![ended(crash(), true), ended(crash(), true)],
                vec![Next::AtOnce, Next::Settle],
            ),
            (
                vec![
                    ended(quota(Some(minutes(90))), false),
                    ended(quota(None), false),
                ],
                vec![limit(90), limit(30)],
            ),
        ] {
            let mut tries = Tries::new(OutagePolicy::default());
            let next: Vec<Next> = ends.iter().map(|worked| tries.next(worked)).collect();
            assert_eq!(next, expected);
        }
    }

    #[test]
    fn an_outage_ends_an_agents_work_only_after_its_limit() {
        let busy = || ended(AgentEnd::Overloaded { why: "w".into() }, false);
        let policy = OutagePolicy::default();
        let mut tries = Tries::new(policy);
        let mut waited = Duration::ZERO;
        while let Next::After(Awaited::Provider, wait) = tries.next(&busy()) {
            waited += wait;
        }
        assert_eq!(waited, policy.max_outage);
        let mut working = busy();
        working.report.usage.input_tokens = 1;
        // Its model answered in between, so that this is a new outage.
        assert_ne!(tries.next(&working), Next::Settle);
    }
}
