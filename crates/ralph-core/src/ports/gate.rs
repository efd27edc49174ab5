//! The gate port: how a run controls its gate, and the events that the gate reports.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use super::model::TokenUsage;
use crate::budget::Budget;
use crate::money::Usd;
use crate::net::{ProviderTool, ProviderToolAction};

/// Address of the gate's credential port inside a sandbox. `/health` needs no credential.
pub const CREDENTIAL_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4141));

/// An event reported by the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateEvent {
    /// A model call was charged.
    Charged {
        /// The name that the provider uses.
        model: String,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// The provider rejects the credential repeatedly.
    Refused {
        /// HTTP status of the responses.
        status: u16,
    },
    /// A command tried to reach a host that is not allowed.
    Blocked {
        host: String,
        port: u16,
        /// The egress rule that blocked it.
        reason: String,
        /// The command that ran at that moment, if known.
        command: Option<String>,
    },
    /// Further hosts were blocked that are not reported individually.
    FurtherBlocked {
        /// Number of hosts, not counting those of earlier reports.
        count: u64,
        examples: Vec<String>,
    },
    /// A model request asked the provider for work outside the sandbox.
    ProviderTool {
        /// The provider's host.
        provider: String,
        /// The part of the request that asks for it.
        what: String,
        /// The permission that it needs.
        tool: Option<ProviderTool>,
        action: ProviderToolAction,
    },
}

/// The telemetry of an agent's session. The agent is not trusted, so the numbers decide nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentMeasurements {
    /// Sums by metric.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// The number of log records by name.
    #[serde(default)]
    pub events: BTreeMap<String, u64>,
}

impl AgentMeasurements {
    /// Returns whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.events.is_empty()
    }

    /// Adds to a metric, unless it would be one name too many.
    pub fn add_metric(&mut self, name: String, value: f64, max_names: usize) {
        if self.metrics.len() < max_names || self.metrics.contains_key(&name) {
            *self.metrics.entry(name).or_default() += value;
        }
    }

    /// Counts an event, unless it would be one name too many.
    pub fn add_event(&mut self, name: &str, max_names: usize) {
        if self.events.len() < max_names || self.events.contains_key(name) {
            *self.events.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Adds the measurements of another session.
    pub fn add(&mut self, other: &Self) {
        for (name, value) in &other.metrics {
            *self.metrics.entry(name.clone()).or_default() += value;
        }
        for (name, count) in &other.events {
            *self.events.entry(name.clone()).or_default() += count;
        }
    }
}

/// How a call to a provider failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFailure {
    /// The provider was unavailable; a retry can succeed.
    Unavailable {
        /// The response status, or the host that cannot be reached.
        why: String,
    },
    /// The provider's certificate is not trusted; only a changed setting helps.
    Untrusted {
        /// The provider's host.
        host: String,
    },
}

/// The remaining budget; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    pub cost: Option<Usd>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
}

impl Allowance {
    /// Returns an allowance that permits no spending.
    pub fn zero() -> Self {
        Self {
            cost: Some(Usd::ZERO),
            tokens: Some(0),
        }
    }
}

/// Controls the gate of a run.
pub trait GateControl: Send + Sync {
    /// Returns the events since the last call, oldest first.
    fn drain_events(&self) -> Vec<GateEvent>;
    /// Sets the budget that remains after the charges already returned as events; later charges
    /// reduce it. Calls that could cost more are rejected.
    fn set_allowance(&self, allowance: Allowance);
    /// Returns whether the gate charges model calls.
    fn is_metered(&self) -> bool {
        true
    }
    /// Returns whether a call has started that is not charged yet.
    fn has_unsettled_calls(&self) -> bool {
        false
    }
    /// Charges the reservation for calls of disconnected clients, instead of waiting for
    /// the provider's token count.
    fn settle_open_calls(&self) {}
    /// Returns the budget that was too low for the last call, if no call has been admitted since.
    fn exhausted_budget(&self) -> Option<Budget> {
        None
    }
    /// Returns how the last call to a provider failed, if no call has succeeded since. Setting an
    /// allowance discards earlier failures.
    fn provider_failure(&self) -> Option<ProviderFailure> {
        None
    }
    /// Returns the telemetry that the agent sent since the last call, if there was any.
    fn drain_telemetry(&self) -> Option<AgentMeasurements> {
        None
    }
    /// Sets the command that runs in the sandbox, so that blocked connections can be attributed to
    /// it.
    fn set_running_command(&self, _command: Option<&str>) {}
    /// Allows commands to reach a host, or returns the reason why that is impossible.
    fn allow_host(&self, host: &str) -> Result<(), String>;
    /// Replaces the hosts that commands reach only during set-up; none ends set-up. Gates that allow
    /// every host need not implement this.
    fn set_setup_hosts(&self, _hosts: &[String]) {}
    /// Reports the next blocked connection to a host again. Gates that report every connection need
    /// not implement this.
    fn reset_blocked_host(&self, _host: &str) {}
}
