//! The gate port: what a run asks of the one door out of its sandbox, and what it hears from there.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use super::model::TokenUsage;
use crate::budget::Budget;
use crate::money::Usd;
use crate::net::{ProviderTool, ProviderToolAction};

/// Where the credential port of a gate is inside of a sandbox. It answers `/health` to everybody.
pub const CREDENTIAL_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4141));

/// What happened at the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateEvent {
    /// A call to a model was paid for.
    Charged {
        /// The model, as the provider names it.
        model: String,
        /// Its tokens.
        usage: TokenUsage,
        /// Its cost.
        cost_usd: Usd,
    },
    /// The provider refuses the credential, again and again.
    Refused {
        /// The status of its answers.
        status: u16,
    },
    /// Something in the sandbox wanted to reach a host that it may not.
    Blocked {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The rule.
        reason: String,
        /// What ran at that moment, if anybody knows.
        command: Option<String>,
    },
    /// Further hosts were blocked that are not reported one by one.
    FurtherBlocked {
        /// How many hosts, not counting those of earlier reports.
        count: u64,
        /// A few of them.
        examples: Vec<String>,
    },
    /// A request to a model asked the provider for work outside of the sandbox.
    ProviderTool {
        /// The provider's host.
        provider: String,
        /// The part of the request.
        what: String,
        /// The permission that it needs.
        tool: Option<ProviderTool>,
        /// The gate's decision.
        action: ProviderToolAction,
    },
}

/// How a call to a provider failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFailure {
    /// The provider was not available; another attempt can succeed.
    Unavailable {
        /// The status of its answer, or the host that cannot be reached.
        why: String,
    },
    /// The provider's certificate is not trusted, which only another setting changes.
    Untrusted {
        /// The provider's host.
        host: String,
    },
}

/// What may still be spent; none means without a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Dollars.
    pub cost: Option<Usd>,
    /// Tokens of input and output together.
    pub tokens: Option<u64>,
}

impl Allowance {
    /// Returns that nothing may be spent.
    pub fn zero() -> Self {
        Self {
            cost: Some(Usd::ZERO),
            tokens: Some(0),
        }
    }
}

/// Keeps the door out of a sandbox.
pub trait GateControl: Send + Sync {
    /// Returns what happened since it was last asked, oldest first.
    fn drain_events(&self) -> Vec<GateEvent>;
    /// Says what may still be spent beyond the charges that were returned as news; calls that could
    /// cost more are refused.
    fn set_allowance(&self, allowance: Allowance);
    /// Tells whether calls to models are paid for here.
    fn is_metered(&self) -> bool {
        true
    }
    /// Tells whether a call was begun that is not paid for yet.
    fn has_unsettled_calls(&self) -> bool {
        false
    }
    /// Charges calls whose client has left by what was reserved for them, instead of waiting for the
    /// provider's count.
    fn settle_open_calls(&self) {}
    /// Returns the budget that did not pay for the last call, if no other call was admitted since.
    fn exhausted_budget(&self) -> Option<Budget> {
        None
    }
    /// Returns how the last call to a provider failed, if no call was answered since. Setting an allowance
    /// forgets earlier calls.
    fn provider_failure(&self) -> Option<ProviderFailure> {
        None
    }
    /// Says what runs in the sandbox from now on, so that what is blocked is told with it.
    fn set_running_command(&self, _command: Option<&str>) {}
    /// Lets commands reach a host from now on, or says why that cannot be.
    fn allow_host(&self, host: &str) -> Result<(), String>;
    /// Forgets that it has told of a refused host: the next one who wants to reach it is news again.
    /// A gate that tells of each of them has nothing to forget.
    fn reset_blocked_host(&self, _host: &str) {}
}
