//! Events of an agent's sessions.

use serde::{Deserialize, Serialize};

use crate::id::Digest;
use crate::money::Usd;
use crate::ports::{AgentEnd, AgentEvent, AgentMeasurements, AgentReport, TokenUsage};

/// A session of an agent's program in the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentSessionEvent {
    /// Intent: the agent's program is about to be started in the sandbox.
    AgentStarted {
        iteration: u32,
        attempt: u32,
        agent: String,
        prompt: Digest,
        prompt_bytes: usize,
    },
    /// The agent reported an activity.
    AgentDid {
        iteration: u32,
        #[serde(flatten)]
        did: AgentEvent,
    },
    /// A call of the agent to its model was charged.
    AgentCharged {
        iteration: u32,
        model: String,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// The program sent telemetry about its session.
    AgentMeasured {
        iteration: u32,
        attempt: u32,
        #[serde(flatten)]
        measured: AgentMeasurements,
    },
    /// The fallback agent replaces the agent for the rest of the run.
    AgentSwitched {
        /// The first iteration in which it works.
        iteration: u32,
        /// With its model, as in `agent_fallback`.
        agent: String,
        why: String,
    },
    /// The agent's program has ended.
    AgentFinished {
        iteration: u32,
        attempt: u32,
        #[serde(flatten)]
        end: AgentEnd,
        report: AgentReport,
        duration_ms: u64,
    },
}

impl AgentSessionEvent {
    pub(super) const TYPES: &[&str] = &[
        "agent_started",
        "agent_did",
        "agent_charged",
        "agent_measured",
        "agent_switched",
        "agent_finished",
    ];
}
