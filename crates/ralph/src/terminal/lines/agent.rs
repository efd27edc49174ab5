//! What an agent's program does in the sandbox, and what happens at the gate.

use ralph_core::event::{Event, MessageState};
use ralph_core::net::{ProviderTool, ProviderToolAction};
use ralph_core::ports::{AgentEnd, AgentEvent, AgentReport};
use ralph_core::state::{RunState, host_entry};

use super::Style;
use super::pieces::{aside, judged, warning};
use crate::terminal::format;
use crate::terminal::line::{Line, Tone};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "`of` decides exhaustively which events come here"
)]
pub(super) fn lines(event: &Event, state: &RunState, style: Style) -> Vec<Line> {
    match event {
        Event::AgentStarted { agent, attempt, .. } => match style {
            Style::Rich { .. } => Vec::new(),
            Style::Plain => vec![aside(&working(agent, *attempt))],
        },
        Event::AgentDid { did, .. } => did_lines(did),
        Event::AgentFinished {
            end,
            report,
            duration_ms,
            ..
        } => finished(end, report, *duration_ms),
        Event::HostBlocked {
            host,
            port,
            reason,
            command,
        } => {
            let (run, entry) = (&state.plan.run, host_entry(host, *port));
            let by = command.as_deref().map(wanted_by).unwrap_or_default();
            let reason = in_words(reason);
            vec![warning(&format!(
                "blocked: {host}:{port}, {reason}{by}; `ralph allow {run} {entry}` lets it through"
            ))]
        }
        Event::FurtherHostsBlocked { count, examples } => {
            vec![warning(&further_blocked(*count, examples))]
        }
        Event::ProviderToolScreened {
            provider,
            what,
            tool,
            action,
        } => {
            let text = provider_tool(provider, what, *tool, *action);
            vec![match action {
                ProviderToolAction::Allowed => aside(&text),
                ProviderToolAction::Removed | ProviderToolAction::Refused => warning(&text),
            }]
        }
        Event::HostAllowed { host } => vec![Line::of("  » ").plain(&format!("{host} is allowed"))],
        Event::MessageMoved { text, to, .. } => {
            let state = match to {
                MessageState::Queued => "waits",
                MessageState::Delivered => "was handed over",
                MessageState::Acknowledged => "was taken up",
            };
            vec![Line::of("  » ").folded(Tone::Plain, &format!("a message {state}: {text}"))]
        }
        _ => Vec::new(),
    }
}

/// Describes blocked hosts that have no lines of their own.
fn further_blocked(count: u64, examples: &[String]) -> String {
    let hosts = format::plural(count, "further host", "further hosts");
    match examples {
        [] => format!("blocked: {hosts}"),
        examples => format!("blocked: {hosts}, such as {}", examples.join(", ")),
    }
}

/// Describes the gate's decision about a provider-side tool.
fn provider_tool(
    provider: &str,
    what: &str,
    tool: Option<ProviderTool>,
    action: ProviderToolAction,
) -> String {
    let decided = match action {
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
    format!("a request to {provider} was {decided} {what}{more}")
}

/// Says what wanted to reach a host, shortened.
fn wanted_by(command: &str) -> String {
    /// How many characters are enough to know it again.
    const MOST: usize = 60;
    let line = command.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(MOST).collect();
    let more = if shown == command { "" } else { "…" };
    format!(", wanted by `{shown}{more}`")
}

/// Returns the reason of a refusal as people say it.
fn in_words(reason: &str) -> &str {
    match reason {
        "blocked-by-policy" => "this run has no network",
        "blocked-by-allowlist" => "it is not on the allowlist",
        "port-not-allowed" => "that port is not allowed",
        other => other,
    }
}

/// Returns what is being waited for while an agent works.
pub(super) fn working(agent: &str, attempt: u32) -> String {
    match attempt {
        0 | 1 => format!("{agent} works"),
        _ => format!("{agent} works, attempt {attempt}"),
    }
}

fn did_lines(did: &AgentEvent) -> Vec<Line> {
    match did {
        AgentEvent::Started { model } => model
            .iter()
            .map(|model| aside(&format!("with the model {model}")))
            .collect(),
        AgentEvent::Text { text } => vec![Line::of("  ").folded(Tone::Plain, text)],
        AgentEvent::Tool { tool, label, .. } => vec![aside(&format!("{tool} {label}"))],
        AgentEvent::ToolDone { ok: false, .. } => vec![aside("that failed")],
        AgentEvent::Waiting { why, .. } => {
            vec![warning(&format!("the agent waits: {why}"))]
        }
        AgentEvent::ToolDone { ok: true, .. }
        | AgentEvent::Usage { .. }
        | AgentEvent::Acknowledged { .. } => Vec::new(),
    }
}

fn finished(end: &AgentEnd, report: &AgentReport, duration_ms: u64) -> Vec<Line> {
    let took = format::milliseconds(duration_ms);
    let words = match end {
        AgentEnd::Finished => "the agent is done".to_owned(),
        AgentEnd::GaveUp { why } => format!("the agent gave up: {why}"),
        AgentEnd::Unauthorized { why } => format!("the agent's credential was refused: {why}"),
        AgentEnd::Quota { why, .. } => format!("the usage limit is reached: {why}"),
        AgentEnd::Overloaded { why } => format!("the provider is not available: {why}"),
        AgentEnd::OutOfBudget => "the agent was stopped: a budget is used up".to_owned(),
        AgentEnd::Stalled => "the agent was stopped: it did nothing any more".to_owned(),
        AgentEnd::TimedOut => "the agent was stopped: its time was up".to_owned(),
        AgentEnd::Halted => "the agent was stopped: a person wants something else".to_owned(),
        AgentEnd::Crashed { why } => format!("the agent broke down: {why}"),
    };
    let line = judged(*end == AgentEnd::Finished);
    let mut lines = vec![line.plain(&words).quiet(&format!(" ({took})"))];
    if !report.summary.is_empty() {
        lines.push(Line::of("    ").folded(Tone::Quiet, &report.summary));
    }
    lines
}
