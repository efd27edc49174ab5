//! The model port: one prompt in, one reply out. A call has no memory of earlier ones.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::money::Usd;

/// The longest wait within an iteration before a model is called again. If a provider asks for
/// more, a usage limit is reached and the whole run waits.
pub const MAX_RETRY_WAIT: Duration = Duration::from_mins(2);

/// A prompt and the constraints on its reply.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The instructions that are the same for every iteration.
    pub system: String,
    pub user: String,
    /// JSON schema of the reply, for providers that enforce one.
    pub schema: Option<&'static Value>,
    /// Maximum number of tokens in the reply; `None` leaves the limit to the model.
    pub max_output_tokens: Option<u64>,
}

/// Maximum number of tokens that a provider adds to a prompt.
const MAX_ADDED_TOKENS: u64 = 1024;

impl ModelRequest {
    /// Returns the whole prompt, as it is stored and as scripted models match it.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.system, self.user)
    }

    /// Returns an upper bound of the prompt's tokens: a token is at least one byte.
    pub fn max_input_tokens(&self) -> u64 {
        let schema = self.schema.map_or(0, |schema| schema.to_string().len());
        let bytes = self.system.len() + self.user.len() + schema;
        (bytes as u64).saturating_add(MAX_ADDED_TOKENS)
    }
}

/// The reply to a [`ModelRequest`].
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// The reply, byte for byte.
    pub text: String,
    pub usage: TokenUsage,
    pub finish: FinishReason,
    /// Position of a recorded reply in its file (`line 3`), for models that read replies from a
    /// file.
    pub source: Option<String>,
    /// The model that replied, as the provider names it.
    pub answered_by: Option<String>,
    /// Cost of the call, if a gateway reports it.
    pub billed: Option<Usd>,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The reply is complete.
    Complete,
    /// The reply was cut off at the output limit.
    Length,
    /// The provider's filter or the model refused to reply.
    Refused,
}

/// Tokens of one or more calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenUsage {
    /// Tokens of the prompt, including cache reads and writes.
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    /// Part of the input.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Part of the input.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Part of `cache_write_tokens` that is stored for an hour, at a different price.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h_tokens: u64,
    /// Part of the output, if the provider counts it separately.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TokenUsage {
    /// Returns input and output together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds another call's tokens.
    pub fn add(&mut self, other: TokenUsage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self
            .cache_read_tokens
            .saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self
            .cache_write_tokens
            .saturating_add(other.cache_write_tokens);
        self.cache_write_1h_tokens = self
            .cache_write_1h_tokens
            .saturating_add(other.cache_write_1h_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// Why a call returned no reply.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The provider is temporarily overloaded or unavailable; a retry can succeed.
    #[error(
        "model `{model}` is not available at the moment: {}",
        situation(*status, message)
    )]
    Transient {
        model: String,
        /// The HTTP status, or 0 if there was no response.
        status: u16,
        /// The delay that the provider asked for.
        retry_after: Option<Duration>,
        /// The provider's message.
        message: String,
    },
    /// The provider rejected the credential.
    #[error(
        "model `{model}` refused the credential: status {status}{}",
        detail(message)
    )]
    Unauthorized {
        model: String,
        status: u16,
        /// The provider's message.
        message: String,
        /// The environment variable with the credential.
        key: Option<String>,
    },
    /// A usage limit is reached; a retry can succeed after its reset.
    #[error("the usage limit of model `{model}` is reached{}", detail(message))]
    QuotaUsedUp {
        model: String,
        /// Time until the reset, if the provider reports it.
        resets_in: Option<Duration>,
        /// The provider's message.
        message: String,
    },
    /// The reply ended early. Its actions are never performed, but the provider bills it.
    #[error("the answer of model `{model}` was cut off: {message}")]
    CutOff {
        model: String,
        message: String,
        /// The part of the reply that arrived.
        partial: String,
        /// Tokens used so far, as far as they are known.
        usage: TokenUsage,
    },
    /// The call failed, and a retry would fail in the same way.
    #[error("model `{model}` cannot answer: {message}")]
    Broken {
        model: String,
        message: String,
        /// The setting to change, as an imperative, if known.
        fix: Option<String>,
    },
}

fn situation(status: u16, message: &str) -> String {
    match status {
        0 if !message.is_empty() => message.to_owned(),
        0 => "no response".to_owned(),
        _ => format!("status {status}{}", detail(message)),
    }
}

fn detail(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(", {message}")
    }
}

/// A model that replies to prompts.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the name used for prices and records, such as `zai/glm-4.7` or
    /// `scripted:demo.jsonl`.
    fn name(&self) -> &str;
    /// Returns the maximum number of tokens in a reply, unless the request limits it further.
    /// `None` for models that read replies from a file and have no limit.
    fn output_limit(&self) -> Option<u64> {
        None
    }
    /// Sends one request. Retries are separate calls, so that the caller can count each of them.
    async fn ask_once(&self, request: &ModelRequest) -> Result<ModelReply, ModelError>;
}
