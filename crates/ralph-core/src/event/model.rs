//! Events of the calls to the model.

use serde::{Deserialize, Serialize};

use crate::id::Digest;
use crate::money::Usd;
use crate::ports::TokenUsage;

/// Calls to the model within an iteration, and their replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelEvent {
    /// Intent: the model is about to be called.
    ModelAsked {
        iteration: u32,
        attempt: u32,
        prompt: Digest,
        prompt_bytes: usize,
        /// The most that the call can be billed for. Charged if its reply is lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<TokenUsage>,
    },
    /// The model replied and the reply is on disk.
    ModelReplied {
        iteration: u32,
        attempt: u32,
        response: Digest,
        usage: TokenUsage,
        cost_usd: Usd,
        duration_ms: u64,
        /// The line of a script that the reply came from.
        source: Option<String>,
    },
    /// The model did not reply.
    ModelFailed {
        iteration: u32,
        attempt: u32,
        error: String,
        retry_in_ms: Option<u64>,
    },
    /// The reply was not received completely. It is charged, by estimate if necessary, and requested
    /// again.
    ModelAbandoned {
        iteration: u32,
        attempt: u32,
        usage: TokenUsage,
        cost_usd: Usd,
    },
    /// The reply breaks the rules for replies; none of its actions was performed.
    ReplyRejected {
        iteration: u32,
        attempt: u32,
        errors: String,
    },
    /// The reply was parsed.
    ReplyAccepted {
        iteration: u32,
        summary: String,
        actions: usize,
        repaired: bool,
    },
}

impl ModelEvent {
    pub(super) const TYPES: &[&str] = &[
        "model_asked",
        "model_replied",
        "model_failed",
        "model_abandoned",
        "reply_rejected",
        "reply_accepted",
    ];
}
