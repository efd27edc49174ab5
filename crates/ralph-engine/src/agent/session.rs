//! One session of an agent's program, from its prompt to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use ralph_core::event::{AgentSessionEvent, Event};
use ralph_core::ports::{
    Agent, AgentEnd, AgentEvent, AgentReport, Allowance, Exec, ExecProgram, ExecStatus,
    ProviderFailure, ProviderProblem, SandboxError,
};
use tokio::sync::mpsc::UnboundedSender;

use super::home::{create_home, remove_home};
use super::prompt::agent_prompt;
use super::session_record::{
    charge_unmetered, log_session, measured_event, record_start, write_agent_response,
};
use super::sink::{AgentActivity, AgentSink};
use super::transcript::TranscriptWriter;
use super::watch::{CutReason, WatchOutcome, event_channel, watch_agent};
use crate::capture::Capture;
use crate::controls::Controls;
use crate::error::RunError;
use crate::immediate_commands::drain_gate_events;
use crate::journal::millis;
use crate::live_output::LiveSource;
use crate::messages::{acknowledged_messages, mark_messages_delivered};
use crate::recorder::Recorder;
use crate::run::Run;

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionOutcome {
    pub(super) end: AgentEnd,
    pub(super) report: AgentReport,
    /// Whether a signal that the run did not send, or an interruption of the sandbox, ended it.
    pub(super) was_interrupted: bool,
}

/// Starts the agent once and waits for its end.
pub(super) async fn run_agent_session(
    run: &mut Run,
    agent: &dyn Agent,
) -> Result<SessionOutcome, RunError> {
    let Run {
        recorder,
        bench,
        controls,
        services,
        pinned,
        ..
    } = run;
    let home = create_home(&*bench.sandbox).await?;
    mark_messages_delivered(recorder)?;
    let prompt = agent_prompt(recorder, pinned)?;
    let attempt = record_start(recorder, agent.name(), &prompt)?;
    // The allowance is computed from recorded spending, so record the pending events first.
    drain_gate_events(recorder, controls)?;
    set_allowance(recorder, controls);
    let activity = AgentActivity::new(recorder.clock.clone());
    let (sender, events) = event_channel();
    let mut sink = agent_sink(recorder, agent, activity.clone(), sender)?;
    let exec = agent_exec(recorder, agent, &prompt, home);
    let link = (activity.clone(), events);
    let watched = watch_agent(recorder, bench, controls, agent, exec, &mut sink, link).await;
    remove_home(&*bench.sandbox).await;
    let gate = controls.open_gate();
    let is_over_budget = gate.is_some_and(|gate| gate.exhausted_budget().is_some());
    let failure = gate.and_then(|gate| gate.provider_failure());
    // Only the agent may spend: neither a test nor a process that it left behind.
    if let Some(gate) = gate {
        gate.set_allowance(Allowance::zero());
    }
    let watched = watched?;
    sink.finish_transcript()?;
    let took = activity.elapsed();
    let mut outcome = session_outcome(watched, &mut sink)?;
    if is_over_budget && is_failure(&outcome.end) {
        // The agents' messages about a refused call differ, so the gate's observation decides.
        outcome.end = AgentEnd::OutOfBudget;
    }
    let untrusted = apply_provider_failure(&mut outcome, failure);
    if let Some(message) = failure_message(&outcome) {
        recorder.log_error(&format!("{}: {message}", agent.name()))?;
    }
    log_session(recorder, controls, agent, &sink, &outcome, took)?;
    let output = sink.capture.finish();
    recorder.append_test_output(agent.name(), &output, to_command_end(&outcome.end))?;
    write_agent_response(recorder, agent.name(), &outcome)?;
    charge_unmetered(recorder, services, agent.name(), &outcome.report)?;
    // After a power cut the agent does not start again, so its work must be on disk.
    bench.sandbox.sync().await?;
    let finished = Event::Agent(AgentSessionEvent::AgentFinished {
        iteration: recorder.state().iteration,
        attempt,
        end: outcome.end.clone(),
        report: outcome.report.clone(),
        duration_ms: millis(took),
    });
    let measured = measured_event(recorder, controls, attempt);
    let acknowledged = has_read_prompt(&outcome.end).then(|| acknowledged_messages(recorder));
    let acknowledged = acknowledged.unwrap_or_default();
    recorder.append_all(measured.into_iter().chain([finished]).chain(acknowledged))?;
    untrusted.map_or(Ok(outcome), |problem| {
        Err(RunError::UnusableSandbox(problem))
    })
}

/// Returns the receiver of the agent's output.
fn agent_sink(
    recorder: &Recorder,
    agent: &dyn Agent,
    activity: Arc<AgentActivity>,
    sender: UnboundedSender<AgentEvent>,
) -> Result<AgentSink, RunError> {
    let capture = Capture::new(&recorder.redactor);
    let live = recorder.live_output(LiveSource::Agent(agent.name()));
    let format = agent.transcript_format();
    let path = recorder.open_iteration_file(format.file_name());
    let transcript = TranscriptWriter::open(path, format, &recorder.redactor)?;
    let sink = AgentSink::new(agent.reader(), capture, activity, sender);
    Ok(sink.with_live(live).with_transcript(transcript))
}

fn agent_exec(
    recorder: &Recorder,
    agent: &dyn Agent,
    prompt: &str,
    home: BTreeMap<String, String>,
) -> Exec {
    let command = agent.command(prompt);
    let timeout = agent.timeouts().total.min(recorder.time_left());
    // The new home directory precedes one of the agent's definition.
    let mut env = command.env;
    env.extend(home);
    Exec {
        program: ExecProgram::Argv(command.argv),
        env,
        ..Exec::shell("", timeout)
    }
    .with_stdin(command.stdin)
}

/// Sets the gate's allowance to the remaining budget.
fn set_allowance(recorder: &Recorder, controls: &Controls) {
    let Some(gate) = controls.open_gate() else {
        return;
    };
    let limits = recorder.limits();
    let spent = recorder.spent();
    gate.set_allowance(Allowance {
        cost: limits.max_cost.map(|most| most.saturating_sub(spent.cost)),
        tokens: limits
            .max_tokens
            .map(|most| most.saturating_sub(spent.tokens)),
    });
}

/// Returns how the session ended; external observations take precedence over the agent's report.
fn session_outcome(
    watched: WatchOutcome,
    sink: &mut AgentSink,
) -> Result<SessionOutcome, RunError> {
    let stderr = sink.capture.captured_stderr();
    let (ended, cut, interruption) = match watched {
        WatchOutcome::Ended(Ok(outcome)) => (outcome.ended, None, None),
        WatchOutcome::Ended(Err(SandboxError::Interrupted { why })) => {
            (ExecStatus::Signalled(9), None, Some(why))
        }
        WatchOutcome::Ended(Err(error)) => return Err(error.into()),
        WatchOutcome::Cut(CutReason::Stalled) => {
            (ExecStatus::TimedOut, Some(CutReason::Stalled), None)
        }
        WatchOutcome::Cut(CutReason::Halted) => {
            (ExecStatus::Signalled(15), Some(CutReason::Halted), None)
        }
        WatchOutcome::Cut(cut @ CutReason::Refused(_)) => {
            (ExecStatus::Signalled(15), Some(cut), None)
        }
        WatchOutcome::Cut(CutReason::Lingering) => (ExecStatus::Exited(0), None, None),
    };
    let (reported, report) = sink.reader.finish(ended, &stderr);
    let is_killed = cut.is_none() && matches!(ended, ExecStatus::Signalled(_));
    let was_interrupted = is_killed && matches!(reported, AgentEnd::Crashed { .. });
    let end = match (cut, reported) {
        (Some(CutReason::Halted | CutReason::Refused(_)), AgentEnd::Finished) => AgentEnd::Finished,
        (Some(CutReason::Refused(status)), _) => AgentEnd::Unauthorized {
            why: format!("the provider responds with status {status}"),
        },
        (Some(CutReason::Halted), _) => AgentEnd::Halted,
        // An earlier failure explains the silence better.
        (Some(CutReason::Stalled), AgentEnd::Crashed { .. } | AgentEnd::TimedOut) => {
            AgentEnd::Stalled
        }
        (None, AgentEnd::Crashed { why }) => AgentEnd::Crashed {
            why: interruption.unwrap_or(why),
        },
        (Some(CutReason::Stalled | CutReason::Lingering) | None, reported) => reported,
    };
    Ok(SessionOutcome {
        end,
        report,
        was_interrupted,
    })
}

/// Returns the failure of a session for the error log, if there was one.
fn failure_message(outcome: &SessionOutcome) -> Option<String> {
    match &outcome.end {
        // An outage is in the activity log. The error log is a part of prompts, and a long outage
        // would fill it.
        AgentEnd::Finished | AgentEnd::Halted | AgentEnd::Overloaded { .. } => None,
        AgentEnd::Crashed { why } if outcome.was_interrupted => Some(format!("interrupted: {why}")),
        AgentEnd::Crashed { why } => Some(format!("crashed: {why}")),
        AgentEnd::GaveUp { why } => Some(format!("gave up: {why}")),
        AgentEnd::Unauthorized { why } => Some(format!("its credential was refused: {why}")),
        AgentEnd::Quota { why, .. } => Some(format!("its usage limit is reached: {why}")),
        AgentEnd::OutOfBudget => Some("the budget is used up".into()),
        AgentEnd::Stalled => Some("it stopped producing output".into()),
        AgentEnd::TimedOut => Some("it timed out".into()),
    }
}

/// Replaces an agent's failure with the provider failure that the gate saw, because the agent's
/// message is not always recognised. Returns a problem that the user has to solve.
fn apply_provider_failure(
    outcome: &mut SessionOutcome,
    failure: Option<ProviderFailure>,
) -> Option<ProviderProblem> {
    if !may_be_an_outage(&outcome.end) {
        return None;
    }
    match failure? {
        ProviderFailure::Unavailable { why } => {
            // The agent's message about an outage contains more than a status.
            if !matches!(outcome.end, AgentEnd::Overloaded { .. }) {
                outcome.end = AgentEnd::Overloaded { why };
                outcome.was_interrupted = false;
            }
            None
        }
        ProviderFailure::Untrusted { host } => Some(ProviderProblem {
            what: format!("the certificate of `{host}` is not trusted"),
            fix: "if it is your own server or a proxy, set `SSL_CERT_FILE` to a file with the certificate of its authority".into(),
        }),
    }
}

/// Returns whether an unavailable provider can be the cause of an end.
fn may_be_an_outage(end: &AgentEnd) -> bool {
    match end {
        AgentEnd::GaveUp { .. }
        | AgentEnd::Crashed { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::Stalled
        | AgentEnd::TimedOut => true,
        AgentEnd::Quota { .. }
        | AgentEnd::Finished
        | AgentEnd::OutOfBudget
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::Halted => false,
    }
}

/// Returns whether an agent failed and was not stopped.
fn is_failure(end: &AgentEnd) -> bool {
    match end {
        AgentEnd::GaveUp { .. }
        | AgentEnd::Quota { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::Crashed { .. } => true,
        AgentEnd::Finished
        | AgentEnd::OutOfBudget
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::Stalled
        | AgentEnd::TimedOut
        | AgentEnd::Halted => false,
    }
}

/// Returns whether an agent that ended this way has read its prompt.
fn has_read_prompt(end: &AgentEnd) -> bool {
    match end {
        AgentEnd::Finished | AgentEnd::GaveUp { .. } => true,
        AgentEnd::Unauthorized { .. }
        | AgentEnd::Quota { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::OutOfBudget
        | AgentEnd::Stalled
        | AgentEnd::TimedOut
        | AgentEnd::Halted
        | AgentEnd::Crashed { .. } => false,
    }
}

/// Returns the equivalent end of a command.
fn to_command_end(end: &AgentEnd) -> ExecStatus {
    match end {
        AgentEnd::Finished => ExecStatus::Exited(0),
        AgentEnd::TimedOut | AgentEnd::Stalled => ExecStatus::TimedOut,
        AgentEnd::Halted => ExecStatus::Signalled(15),
        AgentEnd::GaveUp { .. }
        | AgentEnd::Unauthorized { .. }
        | AgentEnd::Quota { .. }
        | AgentEnd::Overloaded { .. }
        | AgentEnd::OutOfBudget
        | AgentEnd::Crashed { .. } => ExecStatus::Exited(1),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ralph_core::ports::{AgentReader, ExecOutcome};
    use ralph_core::secret::Redactor;
    use ralph_test::TestClock;

    use super::*;

    /// Returns the given end; without one, the end that follows from the exit of the process.
    struct FixedEndReader(Option<AgentEnd>);

    impl AgentReader for FixedEndReader {
        fn parse_line(&mut self, _: &str) -> Vec<AgentEvent> {
            Vec::new()
        }

        fn is_done(&self) -> bool {
            self.0.is_some()
        }

        fn finish(&mut self, ended: ExecStatus, _: &str) -> (AgentEnd, AgentReport) {
            let by_end = match ended {
                ExecStatus::TimedOut => AgentEnd::TimedOut,
                ExecStatus::Exited(_)
                | ExecStatus::Signalled(_)
                | ExecStatus::OutputLimit
                | ExecStatus::DiskLimit
                | ExecStatus::OutOfMemory => AgentEnd::Crashed {
                    why: ended.to_string(),
                },
            };
            (self.0.take().unwrap_or(by_end), AgentReport::default())
        }
    }

    fn exited(ended: ExecStatus) -> WatchOutcome {
        WatchOutcome::Ended(Ok(ExecOutcome {
            ended,
            duration: Duration::ZERO,
            stdout_bytes: 0,
            stderr_bytes: 0,
            process_limit: false,
        }))
    }

    fn outcome_of(watched: WatchOutcome, says: Option<&AgentEnd>) -> (AgentEnd, bool) {
        let (sender, _events) = event_channel();
        let capture = Capture::new(&Redactor::new(Vec::new()));
        let reader = Box::new(FixedEndReader(says.cloned()));
        let mut sink = AgentSink::new(
            reader,
            capture,
            AgentActivity::new(TestClock::at("2026-03-01T08:00:00Z")),
            sender,
        );
        let outcome = session_outcome(watched, &mut sink).unwrap();
        (outcome.end, outcome.was_interrupted)
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn observed_end_applies_only_without_a_reported_end() {
        let why = || "w".to_owned();
        let quota = AgentEnd::Quota {
            why: why(),
            wait: None,
        };
        let crashed = |why: &str| AgentEnd::Crashed { why: why.into() };
        let interrupted = || WatchOutcome::Ended(Err(SandboxError::Interrupted { why: why() }));
        let (stalled, halted) = (
            || WatchOutcome::Cut(CutReason::Stalled),
            || WatchOutcome::Cut(CutReason::Halted),
        );
        let finished = AgentEnd::Finished;
        for (number, (watched, says, expected)) in [
            (
                exited(ExecStatus::Exited(0)),
                Some(&finished),
                (AgentEnd::Finished, false),
            ),
            (
                exited(ExecStatus::Exited(1)),
                None,
                (crashed("exit 1"), false),
            ),
            (
                exited(ExecStatus::Exited(1)),
                Some(&quota),
                (quota.clone(), false),
            ),
            (
                exited(ExecStatus::TimedOut),
                None,
                (AgentEnd::TimedOut, false),
            ),
            (
                exited(ExecStatus::TimedOut),
                Some(&quota),
                (quota.clone(), false),
            ),
            (
                exited(ExecStatus::Signalled(9)),
                None,
                (crashed("killed by signal 9"), true),
            ),
            (
                exited(ExecStatus::OutOfMemory),
                None,
                (crashed("killed: out of memory"), false),
            ),
            (interrupted(), None, (crashed("w"), true)),
            (interrupted(), Some(&finished), (AgentEnd::Finished, false)),
            (stalled(), None, (AgentEnd::Stalled, false)),
            (stalled(), Some(&quota), (quota.clone(), false)),
            (stalled(), Some(&crashed("c")), (AgentEnd::Stalled, false)),
            (halted(), None, (AgentEnd::Halted, false)),
            (halted(), Some(&quota), (AgentEnd::Halted, false)),
            (halted(), Some(&finished), (AgentEnd::Finished, false)),
            (
                WatchOutcome::Cut(CutReason::Lingering),
                Some(&quota),
                (quota.clone(), false),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(outcome_of(watched, says), expected, "case {number}");
        }
    }
}
