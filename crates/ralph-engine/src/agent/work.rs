//! One iteration of an agent: it is let work, again where that helps, and what it did is settled.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::budget;
use ralph_core::event::{Event, IterationOutcome};
use ralph_core::ports::{Agent, AgentEnd, AgentReport};

use super::session::Worked;
use crate::actions::Performed;
use crate::control::Wish;
use crate::error::RunError;
use crate::live::answer;
use crate::run::{Run, heartbeat};
use crate::steps::quota;

/// Tries while the provider is not available.
const MAX_TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(15);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// What happens after an agent has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    /// What it did is looked at.
    Settle,
    /// It is started again at once: what ended it was not its doing.
    AtOnce,
    /// It is started again after a while: the provider is not available.
    After(Duration),
    /// It is started again when a usage limit is lifted.
    AfterLimit(Duration),
}

/// What was tried in an iteration.
#[derive(Debug, Default)]
struct Tries {
    unavailable: u32,
    limits: u32,
    broken: u32,
}

impl Tries {
    /// Decides what follows an end.
    fn next(&mut self, worked: &Worked) -> Next {
        match &worked.end {
            AgentEnd::Quota { wait, .. } => {
                self.unavailable = 0;
                self.limits += 1;
                quota::wait(*wait, self.limits).map_or(Next::Settle, Next::AfterLimit)
            }
            AgentEnd::Overloaded { .. } => {
                self.unavailable += 1;
                if self.unavailable >= MAX_TRIES {
                    return Next::Settle;
                }
                let wait = FIRST_WAIT * 2_u32.pow(self.unavailable - 1);
                Next::After(wait.min(LONGEST_WAIT))
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
        let mut tries = Tries::default();
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
                Next::After(wait) => self.rest(wait).await?,
                Next::AfterLimit(wait) => self.wait_for_quota(wait, why(&worked.end)).await?,
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

    /// Waits for the provider, unless a person wants something else.
    async fn rest(&mut self, wait: Duration) -> Result<(), RunError> {
        let seconds = wait.as_secs();
        let message =
            format!("the provider is not available; the agent is started again in {seconds} s");
        self.journal.append(Event::Notice { message })?;
        let mut over = std::pin::pin!(tokio::time::sleep(wait.min(self.time_left())));
        let mut beat = heartbeat();
        while self.control.wish.is_none() {
            tokio::select! {
                () = &mut over => break,
                call = self.control.next() => answer(&mut self.journal, &mut self.control, call)?,
                _ = beat.tick() => drop(self.journal.append(Event::StillActive {})?),
            }
        }
        self.boundary().await
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
        let busy = || AgentEnd::Overloaded { why: why() };
        let quota = |wait| AgentEnd::Quota { why: why(), wait };
        let (seconds, minutes) = (Duration::from_secs, Duration::from_mins);
        let after = |wait| Next::After(seconds(wait));
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
                (0..5).map(|_| ended(busy(), false)).collect(),
                vec![after(15), after(30), after(60), after(120), Next::Settle],
            ),
            (
                vec![
                    ended(quota(Some(minutes(90))), false),
                    ended(quota(None), false),
                    ended(busy(), false),
                ],
                vec![
                    Next::AfterLimit(minutes(90)),
                    Next::AfterLimit(minutes(30)),
                    after(15),
                ],
            ),
        ] {
            let mut tries = Tries::default();
            let next: Vec<Next> = ends.iter().map(|worked| tries.next(worked)).collect();
            assert_eq!(next, expected);
        }
    }
}
