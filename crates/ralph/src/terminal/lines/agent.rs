//! Lines about the agent's sessions and the gate's decisions.

use ralph_app::format;
use ralph_app::runs::working_label;
use ralph_core::event::{AgentSessionEvent, EgressEvent};
use ralph_core::net::{ProviderTool, ProviderToolAction};
use ralph_core::ports::{AgentEnd, AgentEvent, AgentReport};
use ralph_core::state::{FinishedTool, RunState, host_entry};

use super::Style;
use super::pieces::{quiet_line, result_line, short_quiet_line, warning_line};
use crate::terminal::styled_line::{StyledLine, Tone};

pub(super) fn session_lines(
    event: &AgentSessionEvent,
    state: &RunState,
    style: Style,
) -> Vec<StyledLine> {
    match event {
        AgentSessionEvent::AgentStarted { agent, attempt, .. } => match style {
            Style::Rich { .. } => Vec::new(),
            Style::Plain => vec![quiet_line(&working_label(agent, *attempt))],
        },
        AgentSessionEvent::AgentDid { did, .. } => agent_event_lines(did, state, style),
        AgentSessionEvent::AgentCharged { .. } | AgentSessionEvent::AgentMeasured { .. } => {
            Vec::new()
        }
        AgentSessionEvent::AgentSwitched { agent, why, .. } => {
            vec![warning_line(&format!(
                "the fallback agent `{agent}` continues: {why}"
            ))]
        }
        AgentSessionEvent::AgentFinished {
            end,
            report,
            duration_ms,
            ..
        } => {
            let mut lines = unfinished_tool_lines(state, style);
            lines.extend(finished_lines(end, report, *duration_ms));
            lines
        }
    }
}

pub(super) fn egress_lines(event: &EgressEvent, state: &RunState) -> Vec<StyledLine> {
    match event {
        EgressEvent::HostBlocked {
            host,
            port,
            reason,
            command,
        } => {
            let (run, entry) = (&state.plan.run, host_entry(host, *port));
            let by = command.as_deref().map(requested_by).unwrap_or_default();
            let reason = reason_text(reason);
            vec![warning_line(&format!(
                "blocked: {host}:{port}, {reason}{by}; `ralph allow {run} {entry}` allows it"
            ))]
        }
        EgressEvent::FurtherHostsBlocked { count, examples } => {
            vec![warning_line(&further_blocked_text(*count, examples))]
        }
        EgressEvent::ProviderToolScreened {
            provider,
            what,
            tool,
            action,
        } => {
            let text = provider_tool_line(provider, what, *tool, *action);
            vec![match action {
                ProviderToolAction::Allowed => quiet_line(&text),
                ProviderToolAction::Removed | ProviderToolAction::Refused => warning_line(&text),
            }]
        }
    }
}

/// Describes blocked hosts that get no lines of their own.
fn further_blocked_text(count: u64, examples: &[String]) -> String {
    let hosts = format::plural(count, "further host", "further hosts");
    match examples {
        [] => format!("blocked: {hosts}"),
        examples => format!("blocked: {hosts}, such as {}", examples.join(", ")),
    }
}

/// Describes the gate's decision about a provider-side tool.
fn provider_tool_line(
    provider: &str,
    what: &str,
    tool: Option<ProviderTool>,
    action: ProviderToolAction,
) -> String {
    let decision = match action {
        ProviderToolAction::Allowed => "sent with",
        ProviderToolAction::Removed => "sent without",
        ProviderToolAction::Refused => "refused because of",
    };
    let more = match (tool, action) {
        (None, _) | (_, ProviderToolAction::Allowed) => String::new(),
        (Some(tool), ProviderToolAction::Removed | ProviderToolAction::Refused) => {
            format!("; `{tool}` in `sandbox.network.provider_tools` allows it")
        }
    };
    format!("a request to {provider} was {decision} {what}{more}")
}

/// Describes the command that requested a host, by the start of its first line.
fn requested_by(command: &str) -> String {
    /// The number of characters of a command that are shown.
    const MAX_CHARACTERS: usize = 60;
    let line = command.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(MAX_CHARACTERS).collect();
    let more = if shown == command { "" } else { "…" };
    format!(", requested by `{shown}{more}`")
}

/// Describes the reason why a host was blocked.
fn reason_text(reason: &str) -> &str {
    match reason {
        "blocked-by-policy" => "this run has no network",
        "blocked-by-allowlist" => "it is not on the allowlist",
        "port-not-allowed" => "that port is not allowed",
        other => other,
    }
}

fn agent_event_lines(event: &AgentEvent, state: &RunState, style: Style) -> Vec<StyledLine> {
    let open = state.open.as_ref();
    let finished = open.and_then(|open| open.finished_tool.as_ref());
    match event {
        AgentEvent::Started { model } => model
            .iter()
            .map(|model| quiet_line(&format!("model {model}")))
            .collect(),
        AgentEvent::Text { text } => vec![StyledLine::from_text("  ").wrapped(Tone::Plain, text)],
        AgentEvent::Tool { tool, label, .. } => match style {
            // The spinner shows it; its line follows with its outcome.
            Style::Rich { .. } => Vec::new(),
            Style::Plain => vec![short_quiet_line(&format!("{tool} {label}"))],
        },
        AgentEvent::ToolDone { ok, .. } => match finished {
            Some(FinishedTool { label, duration }) => {
                let duration = format::duration(*duration);
                let line = result_line(*ok).quiet(label);
                vec![line.quiet(&format!(" ({duration})"))]
            }
            None if *ok => Vec::new(),
            None => vec![quiet_line("failed")],
        },
        AgentEvent::Waiting { why, .. } => {
            vec![warning_line(&format!("the agent is waiting: {why}"))]
        }
        AgentEvent::Usage { .. } | AgentEvent::Acknowledged { .. } => Vec::new(),
    }
}

/// Returns the tool calls whose end the agent did not report.
fn unfinished_tool_lines(state: &RunState, style: Style) -> Vec<StyledLine> {
    let open = state.open.as_ref();
    let tools = open.map_or(&[][..], |open| open.running_tools.as_slice());
    match style {
        Style::Rich { .. } => tools
            .iter()
            .map(|tool| short_quiet_line(&tool.label))
            .collect(),
        // Their start was shown.
        Style::Plain => Vec::new(),
    }
}

fn finished_lines(end: &AgentEnd, report: &AgentReport, duration_ms: u64) -> Vec<StyledLine> {
    let duration = format::milliseconds(duration_ms);
    let text = match end {
        AgentEnd::Finished => "the agent is done".to_owned(),
        AgentEnd::GaveUp { why } => format!("the agent gave up: {why}"),
        AgentEnd::Unauthorized { why } => format!("the agent's credential was rejected: {why}"),
        AgentEnd::Quota { why, .. } => format!("the usage limit is reached: {why}"),
        AgentEnd::Overloaded { why } => format!("the provider is not available: {why}"),
        AgentEnd::OutOfBudget => "the agent was stopped: a budget is used up".to_owned(),
        AgentEnd::Stalled => "the agent was stopped: it produced no output".to_owned(),
        AgentEnd::TimedOut => "the agent was stopped: it exceeded its timeout".to_owned(),
        AgentEnd::Halted => "the agent was stopped by a user command".to_owned(),
        AgentEnd::Crashed { why } => format!("the agent crashed: {why}"),
    };
    let line = result_line(*end == AgentEnd::Finished);
    let mut lines = vec![line.plain(&text).quiet(&format!(" ({duration})"))];
    if !report.summary.is_empty() {
        lines.push(StyledLine::from_text("    ").wrapped(Tone::Quiet, &report.summary));
    }
    lines
}
