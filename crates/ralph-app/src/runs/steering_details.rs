//! Blocked hosts, provider-side tools and messages of a run.

use ralph_core::event::MessageState;
use ralph_core::net::ProviderToolAction;
use ralph_core::state::{Message, RunState, ScreenedTool};
use serde::Serialize;
use utoipa::ToSchema;

/// The possible and past interventions of users in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SteeringDetails {
    #[serde(skip)]
    pub is_over: bool,
    /// Hosts that commands could not reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_hosts: Vec<BlockedHostEntry>,
    /// The number of further blocked hosts that were not recorded individually.
    #[serde(skip_serializing_if = "is_zero")]
    pub further_blocked: u64,
    /// The provider-side tools that model requests asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider_tools: Vec<ShownProviderTool>,
    /// Hosts that users have allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// Messages of users, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageEntry>,
}

/// A host that commands could not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BlockedHostEntry {
    pub host: String,
    /// The command that allows the host.
    pub allow: String,
}

/// A provider-side tool in a request to a model, and the gate's decision about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ShownProviderTool {
    pub provider: String,
    pub what: String,
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

/// A message to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MessageEntry {
    /// The id of the command that sent the message.
    pub id: String,
    pub text: String,
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
    /// Collects the details from the state of a run.
    pub fn from_state(state: &RunState) -> Self {
        let run = &state.plan.run;
        let is_over = state.status.is_final();
        // A run that has ended can no longer reach any host.
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
