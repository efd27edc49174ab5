//! Events of the gate.

use serde::{Deserialize, Serialize};

use crate::net::{ProviderTool, ProviderToolAction};

/// Outbound traffic that the gate blocked or screened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EgressEvent {
    /// A connection from the sandbox to this host was blocked.
    HostBlocked {
        host: String,
        port: u16,
        reason: String,
        /// The command that ran at that moment, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// Further hosts were blocked and are not recorded one by one, because there were too many.
    FurtherHostsBlocked {
        /// The number of hosts, not counting those of earlier events.
        count: u64,
        /// A few of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        examples: Vec<String>,
    },
    /// A request to a model asked the provider for work outside of the sandbox.
    ProviderToolScreened {
        /// The provider's host.
        provider: String,
        /// The part of the request that asks for it.
        what: String,
        /// The permission that it needs; `None` if no permission allows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<ProviderTool>,
        action: ProviderToolAction,
    },
}

impl EgressEvent {
    pub(super) const TYPES: &[&str] = &[
        "host_blocked",
        "further_hosts_blocked",
        "provider_tool_screened",
    ];
}
