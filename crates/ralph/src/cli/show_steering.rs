//! What `ralph show` says about hosts and messages: what was blocked, how it is allowed, what people said
//! and whether it was taken up.

use ralph_core::event::MessageState;
use ralph_core::net::ProviderToolAction;
use ralph_core::state::{Message, RunState, ScreenedTool};
use serde::Serialize;

use crate::terminal::lines::field_line;
use crate::terminal::styled_line::StyledLine;

/// How many hosts are listed for people; a script gets all.
const MAX_LISTED_HOSTS: usize = 20;
/// How much of a message is shown for people.
const MAX_MESSAGE_CHARACTERS: usize = 100;

/// What people can do about a run, and what they did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SteeringDetails {
    /// Whether the run has ended.
    #[serde(skip)]
    is_over: bool,
    /// Hosts that commands could not reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_hosts: Vec<BlockedHostEntry>,
    /// How many further hosts were blocked without being recorded one by one.
    #[serde(skip_serializing_if = "is_zero")]
    further_blocked: u64,
    /// The work that requests to models asked the provider for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    provider_tools: Vec<ShownProviderTool>,
    /// Hosts that people have allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_hosts: Vec<String>,
    /// What people said, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessageEntry>,
}

/// A host that commands could not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct BlockedHostEntry {
    host: String,
    /// The command that allows it.
    allow: String,
}

/// A provider-side tool in a request to a model, and the gate's decision about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ShownProviderTool {
    provider: String,
    what: String,
    action: ProviderToolAction,
}

impl From<&ScreenedTool> for ShownProviderTool {
    fn from(tool: &ScreenedTool) -> Self {
        Self {
            provider: tool.provider.clone(),
            what: tool.what.clone(),
            action: tool.action,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct MessageEntry {
    id: String,
    text: String,
    state: MessageState,
}

impl From<&Message> for MessageEntry {
    fn from(message: &Message) -> Self {
        Self {
            id: message.id.clone(),
            text: message.text.clone(),
            state: message.state,
        }
    }
}

impl SteeringDetails {
    pub(super) fn from_state(state: &RunState) -> Self {
        let run = &state.plan.run;
        let is_over = state.status.is_final();
        // A run that has ended reaches nothing any more.
        let option = if is_over { " --project" } else { "" };
        let blocked = state.blocked_hosts.iter().map(|host| BlockedHostEntry {
            host: host.clone(),
            allow: format!("ralph allow {run} {host}{option}"),
        });
        Self {
            is_over,
            blocked_hosts: blocked.collect(),
            further_blocked: state.further_blocked,
            provider_tools: state.provider_tools.iter().map(Into::into).collect(),
            allowed_hosts: state.allowed_hosts.iter().cloned().collect(),
            messages: state.messages.iter().map(MessageEntry::from).collect(),
        }
    }

    /// Returns lines for people; none if there is nothing to say.
    pub(super) fn lines(&self) -> Vec<StyledLine> {
        let blocked = self.blocked_hosts.iter().take(MAX_LISTED_HOSTS);
        let whom = if self.is_over { " for later runs" } else { "" };
        let mut told: Vec<(&str, String)> = blocked
            .map(|blocked| {
                let BlockedHostEntry { host, allow } = blocked;
                ("blocked", format!("{host} · `{allow}` allows it{whom}"))
            })
            .collect();
        let more = self.blocked_hosts.len().saturating_sub(MAX_LISTED_HOSTS);
        if more > 0 {
            told.push(("blocked", format!("and {more} more, in `--json`")));
        }
        if self.further_blocked > 0 {
            let count = self.further_blocked;
            told.push((
                "blocked",
                format!("and {count} further hosts, in `egress.jsonl`"),
            ));
        }
        let tools = self.provider_tools.iter().take(MAX_LISTED_HOSTS);
        told.extend(tools.map(|tool| {
            let ShownProviderTool {
                provider,
                what,
                action,
            } = tool;
            ("provider", format!("{action}: {what} at {provider}"))
        }));
        if !self.allowed_hosts.is_empty() {
            told.push(("allowed", self.allowed_hosts.join(", ")));
        }
        let messages = self.messages.iter();
        told.extend(messages.map(|said| ("message", message_line(said))));
        let mut last = "";
        let lines = told.iter().map(|(name, text)| {
            // A name is written once.
            let shown = if *name == last { "" } else { name };
            last = name;
            field_line(shown, text)
        });
        lines.collect()
    }
}

fn message_line(said: &MessageEntry) -> String {
    let state = match said.state {
        MessageState::Queued => "queued",
        MessageState::Delivered => "delivered",
        MessageState::Acknowledged => "acknowledged",
    };
    let words = said.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = words.chars().take(MAX_MESSAGE_CHARACTERS).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    format!("{state}: {shown}")
}
