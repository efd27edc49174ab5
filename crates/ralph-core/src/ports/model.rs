//! The model port: one prompt in, one reply out. A call has no memory of earlier ones.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::money::Usd;

/// The longest time that is waited within an iteration before a model is asked again. A provider that
/// asks for more has a usage limit, and the run waits for its end as a whole.
pub const MAX_RETRY_WAIT: Duration = Duration::from_mins(2);

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The instructions that are the same for every iteration.
    pub system: String,
    /// Everything else, in its fixed order.
    pub user: String,
    /// What an answer looks like, for providers that hold a model to it.
    pub schema: Option<&'static Value>,
    /// The most tokens that the answer may have. None leaves the limit to the model.
    pub max_output_tokens: Option<u64>,
}

/// The most tokens that a provider adds to a prompt.
const MAX_ADDED_TOKENS: u64 = 1024;

impl ModelRequest {
    /// Returns the whole prompt as it is stored and matched against.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.system, self.user)
    }

    /// Returns an upper bound of the prompt's tokens: a token stands for at least one byte.
    pub fn max_input_tokens(&self) -> u64 {
        let schema = self.schema.map_or(0, |schema| schema.to_string().len());
        let bytes = self.system.len() + self.user.len() + schema;
        (bytes as u64).saturating_add(MAX_ADDED_TOKENS)
    }
}

/// What a model answered.
#[derive(Debug, Clone)]
pub struct ModelReply {
    /// The answer, byte for byte.
    pub text: String,
    /// What the provider says was used.
    pub usage: TokenUsage,
    /// Why the model stopped writing.
    pub finish: FinishReason,
    /// Where a recorded reply came from, for models that answer from a file (`line 3`).
    pub source: Option<String>,
    /// The model that answered, in the provider's words.
    pub answered_by: Option<String>,
    /// What the call cost, where a gateway says so.
    pub billed: Option<Usd>,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Complete,
    /// It ran into the output limit: the reply is cut off.
    Length,
    /// The provider's filter or the model itself would not answer.
    Refused,
}

/// Tokens of one call or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the prompt, including those read from or written to a cache.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens of the answer.
    #[serde(default)]
    pub output_tokens: u64,
    /// Part of the input that was read from a cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Part of the input that was written to a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Part of `cache_write_tokens` that is stored for an hour, which has a price of its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h_tokens: u64,
    /// Part of the output that is reasoning, as far as the provider counts it apart.
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

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The provider is busy or broken for the moment: waiting helps.
    #[error(
        "model `{model}` is not available at the moment: {}",
        situation(*status, message)
    )]
    Transient {
        /// The model that was asked.
        model: String,
        /// The HTTP status, or 0 when no answer came at all.
        status: u16,
        /// How long the provider asked to wait.
        retry_after: Option<Duration>,
        /// The provider's words.
        message: String,
    },
    /// The provider refused the credential.
    #[error(
        "model `{model}` refused the credential: status {status}{}",
        detail(message)
    )]
    Unauthorized {
        /// The model that was asked.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        message: String,
        /// The environment variable that the credential is from.
        key: Option<String>,
    },
    /// A usage limit is reached: asking again helps once it is reset.
    #[error("the usage limit of model `{model}` is reached{}", detail(message))]
    QuotaUsedUp {
        /// The model that was asked.
        model: String,
        /// How long it takes until the limit is reset, if the provider says so.
        resets_in: Option<Duration>,
        /// The provider's words.
        message: String,
    },
    /// An answer did not come to its end. It is never performed, but the provider bills it.
    #[error("the answer of model `{model}` was cut off: {message}")]
    CutOff {
        /// The model that was asked.
        model: String,
        /// How it broke off.
        message: String,
        /// What there was of it.
        partial: String,
        /// What it used until then, as far as anybody can tell.
        usage: TokenUsage,
    },
    /// Asking again would give the same answer.
    #[error("model `{model}` cannot answer: {message}")]
    Broken {
        /// The model that was asked.
        model: String,
        /// What is wrong.
        message: String,
        /// The setting to change, as an imperative, where it is known.
        fix: Option<String>,
    },
}

fn situation(status: u16, message: &str) -> String {
    match status {
        0 if !message.is_empty() => message.to_owned(),
        0 => "there was no answer".to_owned(),
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

/// Something that answers prompts.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the name that prices and records go by, such as `zai/glm-4.7` or `scripted:demo.jsonl`.
    fn name(&self) -> &str;
    /// Returns the most tokens that an answer has unless the request limits it further. None for a model
    /// that takes no limit, because it answers from a file.
    fn output_limit(&self) -> Option<u64> {
        None
    }
    /// Asks once. Every retry is a new call, so that every call is counted by the caller.
    async fn ask_once(&self, request: &ModelRequest) -> Result<ModelReply, ModelError>;
}
