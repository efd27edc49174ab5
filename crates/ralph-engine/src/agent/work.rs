//! One iteration of an agent: starts it, restarts it if that helps, and settles its work.

use std::sync::Arc;
use std::time::Duration;

use ralph_core::event::IterationOutcome;
use ralph_core::outage::{Outage, OutagePolicy, OutageStep};
use ralph_core::ports::{Agent, AgentEnd, AgentReport};

use super::fallback::switch_to_fallback;
use super::session::SessionOutcome;
use super::session::run_agent_session;
use super::settle::settle_agent_session;
use crate::actions::Performed;
use crate::controls::PendingRequest;
use crate::error::RunError;
use crate::pause::handle_pending_input;
use crate::recorder::Recorder;
use crate::run::Run;
use crate::steps::quota;
use crate::steps::wait_for_model;
use crate::steps::waiting::{WaitReason, random_jitter};

/// The step after the end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionFollowUp {
    /// Its work is settled.
    Settle,
    /// The agent is restarted immediately: it did not cause its end.
    RestartNow,
    /// The agent is restarted after a wait for its provider or for the end of a usage limit.
    RestartAfter(WaitReason, Duration),
}

/// The most provider failures after successful responses that count as new outages.
const MAX_RECOVERIES: u32 = 3;

/// Counts the reasons for which the sessions of an iteration were repeated.
#[derive(Debug)]
struct SessionRetries {
    outage: Outage,
    quota_waits: u32,
    crashes: u32,
    recoveries: u32,
}

impl SessionRetries {
    fn new(policy: OutagePolicy) -> Self {
        Self {
            outage: Outage::new(policy),
            quota_waits: 0,
            crashes: 0,
            recoveries: 0,
        }
    }

    /// Decides the next step after a session.
    fn after_session(&mut self, session: &SessionOutcome) -> SessionFollowUp {
        match &session.end {
            AgentEnd::Quota { wait, .. } => {
                self.outage.reset();
                self.quota_waits += 1;
                let wait = quota::quota_wait(*wait, self.quota_waits);
                wait.map_or(SessionFollowUp::Settle, |wait| {
                    SessionFollowUp::RestartAfter(WaitReason::Quota, wait)
                })
            }
            AgentEnd::Overloaded { .. } => {
                if session.report.usage.total() > 0 && self.recoveries < MAX_RECOVERIES {
                    // The provider answered before, so this is another outage. A session that
                    // always fails at the same request must not repeat forever.
                    self.recoveries += 1;
                    self.outage.reset();
                }
                match self.outage.record_agent_failure(random_jitter()) {
                    OutageStep::Wait(wait) | OutageStep::Retry(wait) => {
                        SessionFollowUp::RestartAfter(WaitReason::Provider, wait)
                    }
                    OutageStep::GiveUp => SessionFollowUp::Settle,
                }
            }
            AgentEnd::Crashed { .. } if session.was_interrupted && self.crashes == 0 => {
                self.crashes += 1;
                SessionFollowUp::RestartNow
            }
            AgentEnd::Finished
            | AgentEnd::GaveUp { .. }
            | AgentEnd::Unauthorized { .. }
            | AgentEnd::OutOfBudget
            | AgentEnd::Stalled
            | AgentEnd::TimedOut
            | AgentEnd::Halted
            | AgentEnd::Crashed { .. } => SessionFollowUp::Settle,
        }
    }
}

/// Runs the agent, with restarts if they help, and returns its summary with the outcome.
pub(crate) async fn run_agent_iteration(
    run: &mut Run,
    mut agent: Arc<dyn Agent>,
) -> Result<(String, Performed), RunError> {
    if let Some((end, report)) = recorded_agent_end(&run.recorder) {
        return settle_agent_session(run, end, report).await;
    }
    let mut retries = SessionRetries::new(run.services.outage);
    loop {
        if run.recorder.exhausted_budget().is_some() {
            let none = Performed::none(IterationOutcome::OutOfBudget);
            return Ok((String::new(), none));
        }
        let session = run_agent_session(run, &*agent).await?;
        run.recorder.warn_about_budgets()?;
        let follow_up = retries.after_session(&session);
        if is_provider_unusable(&session.end, &follow_up) {
            let why = wait_reason(&*agent, &session.end);
            if let Some(fallback) = switch_to_fallback(run, &why)? {
                agent = fallback;
                retries = SessionRetries::new(run.services.outage);
                continue;
            }
        }
        match follow_up {
            SessionFollowUp::Settle => {
                if session.end == AgentEnd::Halted {
                    // Handle a pause before anything else.
                    handle_pending_input(run).await?;
                }
                return settle_agent_session(run, session.end, session.report).await;
            }
            SessionFollowUp::RestartNow => {}
            SessionFollowUp::RestartAfter(awaited, wait) => {
                wait_for_model(run, awaited, wait, wait_reason(&*agent, &session.end)).await?;
            }
        }
        if run.controls.pending == Some(PendingRequest::Rotate) {
            return settle_agent_session(run, AgentEnd::Halted, session.report).await;
        }
    }
}

/// Returns the end of the agent that an earlier process recorded.
fn recorded_agent_end(recorder: &Recorder) -> Option<(AgentEnd, AgentReport)> {
    let open = recorder.state().open.as_ref()?;
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

/// Returns whether another agent can work and this one cannot: its usage limit is reached, or its
/// provider was not available for the longest time that the run waits.
fn is_provider_unusable(end: &AgentEnd, follow_up: &SessionFollowUp) -> bool {
    match end {
        AgentEnd::Quota { .. } => true,
        AgentEnd::Overloaded { .. } => *follow_up == SessionFollowUp::Settle,
        AgentEnd::Finished
        | AgentEnd::GaveUp { .. }
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::OutOfBudget
        | AgentEnd::Stalled
        | AgentEnd::TimedOut
        | AgentEnd::Halted
        | AgentEnd::Crashed { .. } => false,
    }
}

/// Returns why the next session must wait.
fn wait_reason(agent: &dyn Agent, end: &AgentEnd) -> String {
    let agent = agent.name();
    let why = end_reason(end);
    if matches!(end, AgentEnd::Overloaded { .. }) {
        return format!("the provider of `{agent}` is not available: {why}");
    }
    why
}

/// Returns the reported reason of an end; empty for an end without one.
fn end_reason(end: &AgentEnd) -> String {
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

    fn ended(end: AgentEnd, was_interrupted: bool) -> SessionOutcome {
        SessionOutcome {
            end,
            report: AgentReport::default(),
            was_interrupted,
        }
    }

    #[test]
    fn an_agent_restarts_only_if_that_can_help() {
        let why = || "w".to_owned();
        let crash = || AgentEnd::Crashed { why: why() };
        let quota = |wait| AgentEnd::Quota { why: why(), wait };
        let minutes = Duration::from_mins;
        let limit = |wait| SessionFollowUp::RestartAfter(WaitReason::Quota, minutes(wait));
        for (ends, expected) in [
            (
                vec![ended(AgentEnd::Finished, false)],
                vec![SessionFollowUp::Settle],
            ),
            (
                vec![ended(AgentEnd::Halted, false)],
                vec![SessionFollowUp::Settle],
            ),
            (
                vec![ended(AgentEnd::Stalled, false)],
                vec![SessionFollowUp::Settle],
            ),
            (
                vec![ended(AgentEnd::OutOfBudget, false)],
                vec![SessionFollowUp::Settle],
            ),
            (
                vec![ended(AgentEnd::Unauthorized { why: why() }, false)],
                vec![SessionFollowUp::Settle],
            ),
            (vec![ended(crash(), false)], vec![SessionFollowUp::Settle]),
            (
                vec![ended(crash(), true), ended(crash(), true)],
                vec![SessionFollowUp::RestartNow, SessionFollowUp::Settle],
            ),
            (
                vec![
                    ended(quota(Some(minutes(90))), false),
                    ended(quota(None), false),
                ],
                vec![limit(90), limit(30)],
            ),
        ] {
            let mut retries = SessionRetries::new(OutagePolicy::default());
            let next: Vec<SessionFollowUp> = ends
                .iter()
                .map(|session| retries.after_session(session))
                .collect();
            assert_eq!(next, expected);
        }
    }

    #[test]
    fn an_outage_ends_an_agents_work_only_after_its_limit() {
        let busy = || ended(AgentEnd::Overloaded { why: "w".into() }, false);
        let policy = OutagePolicy::default();
        let mut retries = SessionRetries::new(policy);
        let mut waited = Duration::ZERO;
        while let SessionFollowUp::RestartAfter(WaitReason::Provider, wait) =
            retries.after_session(&busy())
        {
            waited += wait;
        }
        assert_eq!(waited, policy.max_outage);
        let mut working = busy();
        working.report.usage.input_tokens = 1;
        // The model answered in between, so this is a new outage.
        assert_ne!(retries.after_session(&working), SessionFollowUp::Settle);
    }
}
