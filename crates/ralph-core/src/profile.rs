//! The model of a run and its parameters, from a profile or from a model name.
//!
//! The choice is part of a run's journal, so that a resumed run uses the same model. It names the
//! environment variable with the credential, never the credential itself.

use serde::{Deserialize, Serialize};

use crate::price::Price;

/// A model and its parameters. Missing values default to those of the provider's table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// `None` if a model was named directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Such as `zai/glm-4.7` or `scripted:replies.jsonl`.
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The base URL of the API; defaults to the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_base: Option<String>,
    /// The environment variable with the credential; defaults to the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Defaults to the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireApi>,
    /// Defaults to the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_format: Option<ReplyFormat>,
    /// Timeout of one call, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
    /// `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl ModelChoice {
    /// Chooses a model by name, without a profile.
    pub fn for_model(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            ..Self::default()
        }
    }

    /// Returns whether the model needs no network.
    pub fn is_local(&self) -> bool {
        ["scripted:", "replay:"]
            .iter()
            .any(|scheme| self.model.starts_with(scheme))
    }

    /// Returns whether this model replaces every profile. A script or a recorded run that is named
    /// directly answers all calls, so that no other model is called.
    pub fn overrides_all_profiles(&self) -> bool {
        self.profile.is_none() && self.is_local()
    }
}

/// The wire API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireApi {
    /// `OpenAI` chat completions, which most providers offer.
    Chat,
    /// `OpenAI` responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// The native Gemini API.
    Gemini,
}

/// How a request asks the provider for JSON. The prompt describes the format in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFormat {
    /// Send the schema of a reply.
    Schema,
    /// Request any JSON.
    Json,
    /// No constraint.
    Text,
}
