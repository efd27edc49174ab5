//! The record of an agent's session: its prompt, its tools, its response and its cost.

use std::time::Duration;

use ralph_core::event::{AgentSessionEvent, Event};
use ralph_core::id::Digest;
use ralph_core::ports::{Agent, AgentEnd, AgentReport};
use serde::Serialize;

use super::session::SessionOutcome;
use super::sink::AgentSink;
use crate::controls::{Controls, TimedLine};
use crate::durable;
use crate::error::RunError;
use crate::recorder::Recorder;
use crate::redaction;
use crate::services::Services;

/// The content of `response.json` in an iteration of an agent.
#[derive(Serialize)]
struct AgentResponseFile<'a> {
    agent: &'a str,
    #[serde(flatten)]
    end: &'a AgentEnd,
    report: &'a AgentReport,
}

/// Records the prompt of a session and returns the session's number in the iteration.
pub(super) fn record_start(
    recorder: &mut Recorder,
    agent: &str,
    prompt: &str,
) -> Result<u32, RunError> {
    durable::write_unsynced(
        &recorder.open_iteration_file("prompt.md"),
        prompt.as_bytes(),
    )?;
    let open = recorder.state().open.as_ref();
    let attempt = open.map_or(0, |open| open.attempts) + 1;
    recorder.append(AgentSessionEvent::AgentStarted {
        iteration: recorder.state().iteration,
        attempt,
        agent: agent.to_owned(),
        prompt: Digest::compute(prompt.as_bytes()),
        prompt_bytes: prompt.len(),
    })?;
    Ok(attempt)
}

/// Returns the event with the telemetry of a session, if the program sent any.
pub(super) fn measured_event(
    recorder: &Recorder,
    controls: &Controls,
    attempt: u32,
) -> Option<Event> {
    let measured = controls.open_gate()?.drain_telemetry()?;
    Some(Event::Agent(AgentSessionEvent::AgentMeasured {
        iteration: recorder.state().iteration,
        attempt,
        measured,
    }))
}

/// Writes the tools and the user commands of a session to the activity log, each with its time, and
/// the end of the session.
pub(super) fn log_session(
    recorder: &mut Recorder,
    controls: &mut Controls,
    agent: &dyn Agent,
    sink: &AgentSink,
    outcome: &SessionOutcome,
    took: Duration,
) -> Result<(), RunError> {
    let (agent, tools) = (agent.name(), &sink.tools);
    let mut lines = std::mem::take(&mut controls.unlogged);
    lines.extend(tools.iter().map(|tool| TimedLine {
        at: tool.at,
        text: format!("{agent} uses {}", tool.text),
    }));
    lines.sort_by_key(|line| line.at);
    for TimedLine { at, text } in lines {
        recorder.log_activity_at(at, &text)?;
    }
    let usage = &outcome.report.usage;
    recorder.log_activity(&format!(
        "{agent} ended: {} after {} s, {} tools, {} input and {} output tokens by its own count",
        outcome.end.as_str(),
        took.as_secs(),
        tools.len(),
        usage.input_tokens,
        usage.output_tokens,
    ))
}

/// Charges an agent by its own report, if no gate meters its calls.
pub(super) fn charge_unmetered(
    recorder: &mut Recorder,
    services: &Services,
    agent: &str,
    report: &AgentReport,
) -> Result<(), RunError> {
    let is_metered = services.gate.as_ref().is_some_and(|gate| gate.is_metered());
    if is_metered || report.usage.total() == 0 {
        return Ok(());
    }
    let by_price = ralph_core::price::cost(&services.price, &report.usage);
    recorder.append(AgentSessionEvent::AgentCharged {
        iteration: recorder.state().iteration,
        model: agent.to_owned(),
        usage: report.usage,
        cost_usd: report.cost_usd.unwrap_or(by_price),
    })?;
    Ok(())
}

pub(super) fn write_agent_response(
    recorder: &Recorder,
    agent: &str,
    outcome: &SessionOutcome,
) -> Result<(), RunError> {
    let path = recorder.open_iteration_file("response.json");
    let SessionOutcome { end, report, .. } = outcome;
    let file = AgentResponseFile { agent, end, report };
    let text = redaction::to_pretty(&recorder.redactor, &file, &path)?;
    durable::write_unsynced(&path, &text)?;
    Ok(())
}
