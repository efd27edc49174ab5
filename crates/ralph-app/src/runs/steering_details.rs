//! Blocked hosts, provider-side tools and messages of a run.

use ralph_core::event::MessageState;
use ralph_core::net::ProviderToolAction;
use ralph_core::state::{Message, RunState, ScreenedTool};
use serde::Serialize;

/// What people can do about a run, and what they did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SteeringDetails {
    /// Whether the run has ended.
    #[serde(skip)]
    pub is_over: bool,
    /// Hosts that commands could not reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_hosts: Vec<BlockedHostEntry>,
    /// How many further hosts were blocked without being recorded one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub further_blocked: u64,
    /// The work that requests to models asked the provider for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_tools: Vec<ShownProviderTool>,
    /// Hosts that people have allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// What people said, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageEntry>,
}

/// A host that commands could not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedHostEntry {
    /// The host.
    pub host: String,
    /// The command that allows it.
    pub allow: String,
}

/// A provider-side tool in a request to a model, and the gate's decision about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownProviderTool {
    /// The model provider.
    pub provider: String,
    /// The tool.
    pub what: String,
    /// The decision of the gate.
    pub action: ProviderToolAction,
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
pub struct MessageEntry {
    /// The id of the command that sent it.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Whether it was delivered.
    pub state: MessageState,
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
    /// Collects them from the state of a run.
    pub fn from_state(state: &RunState) -> Self {
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
}
