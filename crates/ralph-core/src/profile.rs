//! Which model answers and how it is asked: what a profile says, or the name of a model alone.
//!
//! The choice is part of a run's journal, so that a run goes on with the same model wherever it is
//! resumed. It names the variable with the credential and never holds the credential.

use serde::{Deserialize, Serialize};

use crate::price::Price;

/// Which model answers, and how it is asked. What is not said is left to the provider's table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The profile it comes from; none for a model that was named itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The model, such as `zai/glm-4.7` or `scripted:replies.jsonl`.
    pub model: String,
    /// How long an answer may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much chance is in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Where the provider's API is, if not at its usual address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_base: Option<String>,
    /// The environment variable with the credential, if not the provider's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How the provider is talked to, if not in its usual way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireApi>,
    /// How the provider is told what an answer looks like, if not in its usual way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_format: Option<ReplyFormat>,
    /// How long one call may take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
    /// What its tokens cost; none if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl ModelChoice {
    /// Chooses a model by its name alone.
    pub fn for_model(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            ..Self::default()
        }
    }

    /// Tells whether it answers without a network.
    pub fn is_local(&self) -> bool {
        ["scripted:", "replay:"]
            .iter()
            .any(|scheme| self.model.starts_with(scheme))
    }

    /// Tells whether it stands in for every profile: a script or a recorded run that was named itself
    /// answers whoever is asked, so that nothing else is asked by itself.
    pub fn overrides_all_profiles(&self) -> bool {
        self.profile.is_none() && self.is_local()
    }
}

/// A way to talk to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireApi {
    /// `OpenAI`'s chat completions, which most providers offer.
    Chat,
    /// `OpenAI`'s responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Gemini's own.
    Gemini,
}

/// How a provider is told what an answer looks like. The prompt says it in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFormat {
    /// By the schema of a reply.
    Schema,
    /// As JSON of any kind.
    Json,
    /// Not at all.
    Text,
}
