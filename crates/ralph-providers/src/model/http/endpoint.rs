//! Resolves a model choice to its endpoint.

use ralph_core::profile::{ModelChoice, ReplyFormat, WireApi};

use super::providers::{ModelProvider, PROVIDERS};

/// The endpoint of a model: the provider's defaults, overridden by the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEndpoint {
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    pub wire: WireApi,
    /// How the reply format is requested.
    pub format: ReplyFormat,
    /// The address from the profile; takes precedence over the variables.
    pub chosen_base: Option<String>,
    /// Variables that may contain the address; the first one that is set counts.
    pub base_variables: Vec<String>,
    /// The provider's default address.
    pub default_base: Option<String>,
    /// Variables that may contain the API key; the first one that is set counts.
    pub key_variables: Vec<String>,
    /// Whether requests without a key are rejected.
    pub needs_key: bool,
}

/// Why a model has no known endpoint.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelEndpointError {
    /// The name has no provider prefix.
    #[error("`{model}` has no provider prefix, such as `openai/{model}`")]
    NoProvider { model: String },
    /// The provider is unknown and no address is configured.
    #[error("provider `{provider}` of model `{model}` is unknown, and no `api_base` is configured")]
    Unknown {
        provider: String,
        /// The full name.
        model: String,
    },
}

impl ModelEndpoint {
    /// Resolves the endpoint of a model choice.
    pub fn for_choice(choice: &ModelChoice) -> Result<Self, ModelEndpointError> {
        let (provider, model) = split_name(&choice.model)?;
        let known = PROVIDERS.iter().find(|known| known.name == provider);
        let mut endpoint = match known {
            Some(known) => Self::from_provider(known, model),
            None if choice.api_base.is_some() => Self::for_unknown_provider(provider, model),
            None => {
                return Err(ModelEndpointError::Unknown {
                    provider: provider.to_owned(),
                    model: choice.model.clone(),
                });
            }
        };
        if let Some(base) = &choice.api_base {
            endpoint.chosen_base = Some(base.clone());
            if Some(base) != endpoint.default_base.as_ref() {
                // A third-party server with the same API may support fewer features and need no
                // key.
                endpoint.needs_key = false;
                endpoint.format = at_most_json(endpoint.format);
            }
        }
        if let Some(variable) = &choice.api_key_env {
            endpoint.key_variables = vec![variable.clone()];
            endpoint.needs_key = true;
        }
        endpoint.wire = choice.wire.unwrap_or(endpoint.wire);
        endpoint.format = choice.reply_format.unwrap_or(endpoint.format);
        Ok(endpoint)
    }

    fn from_provider(provider: &ModelProvider, model: &str) -> Self {
        let needs_responses = provider.name == "openai" && is_responses_only(model);
        Self {
            provider: provider.name.to_owned(),
            model: model.to_owned(),
            wire: if needs_responses {
                WireApi::Responses
            } else {
                provider.wire
            },
            format: provider.format,
            chosen_base: None,
            base_variables: to_strings(provider.bases),
            default_base: provider.base.map(str::to_owned),
            key_variables: to_strings(provider.keys),
            needs_key: provider.needs_key,
        }
    }

    /// Assumes the most common API and LiteLLM's variable naming for an unknown provider.
    fn for_unknown_provider(provider: &str, model: &str) -> Self {
        let variable = format!("{}_API_KEY", provider.to_uppercase().replace('-', "_"));
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            wire: WireApi::Chat,
            format: ReplyFormat::Json,
            chosen_base: None,
            base_variables: Vec::new(),
            default_base: None,
            key_variables: vec![variable],
            needs_key: false,
        }
    }
}

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn at_most_json(format: ReplyFormat) -> ReplyFormat {
    match format {
        ReplyFormat::Schema | ReplyFormat::Json => ReplyFormat::Json,
        ReplyFormat::Text => ReplyFormat::Text,
    }
}

/// Splits a name into provider and model. Bare names of two providers' models are recognized.
fn split_name(name: &str) -> Result<(&str, &str), ModelEndpointError> {
    if let Some((provider, model)) = name.split_once('/')
        && !provider.is_empty()
        && !model.is_empty()
    {
        return Ok((provider, model));
    }
    let is_openai = ["gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"]
        .iter()
        .any(|start| name.starts_with(start));
    if is_openai {
        return Ok(("openai", name));
    }
    if name.starts_with("claude-") {
        return Ok(("anthropic", name));
    }
    Err(ModelEndpointError::NoProvider {
        model: name.to_owned(),
    })
}

/// Returns whether OpenAI offers a model only through the Responses API.
fn is_responses_only(model: &str) -> bool {
    let parts: Vec<&str> = model.split('-').collect();
    parts.contains(&"codex") || parts.contains(&"pro") || model.contains("deep-research")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint_text(choice: &ModelChoice) -> String {
        match ModelEndpoint::for_choice(choice) {
            Err(error) => error.to_string(),
            Ok(endpoint) => format!(
                "{} {} {:?} {:?} {} {} {}",
                endpoint.provider,
                endpoint.model,
                endpoint.wire,
                endpoint.format,
                endpoint
                    .chosen_base
                    .or(endpoint.default_base)
                    .unwrap_or_else(|| "nowhere".into()),
                endpoint.key_variables.join("|"),
                if endpoint.needs_key { "key" } else { "free" },
            ),
        }
    }

    #[test]
    fn a_model_name_selects_its_endpoint() {
        for (name, expected) in [
            (
                "zai/glm-4.7",
                "zai glm-4.7 Chat Text https://api.z.ai/api/paas/v4 ZAI_API_KEY key",
            ),
            (
                "openai/gpt-5",
                "openai gpt-5 Chat Schema https://api.openai.com/v1 OPENAI_API_KEY key",
            ),
            (
                "gpt-5",
                "openai gpt-5 Chat Schema https://api.openai.com/v1 OPENAI_API_KEY key",
            ),
            (
                "openai/gpt-5.1-codex-max",
                "openai gpt-5.1-codex-max Responses Schema https://api.openai.com/v1 OPENAI_API_KEY key",
            ),
            (
                "openai/gpt-5-pro",
                "openai gpt-5-pro Responses Schema https://api.openai.com/v1 OPENAI_API_KEY key",
            ),
            (
                "anthropic/claude-sonnet-4-6",
                "anthropic claude-sonnet-4-6 Messages Schema https://api.anthropic.com ANTHROPIC_API_KEY|ANTHROPIC_AUTH_TOKEN key",
            ),
            (
                "gemini/gemini-2.5-pro",
                "gemini gemini-2.5-pro Gemini Json https://generativelanguage.googleapis.com GOOGLE_API_KEY|GEMINI_API_KEY key",
            ),
            (
                "openrouter/anthropic/claude-sonnet-4.5",
                "openrouter anthropic/claude-sonnet-4.5 Chat Json https://openrouter.ai/api/v1 OPENROUTER_API_KEY key",
            ),
            (
                "ollama/qwen3:8b",
                "ollama qwen3:8b Chat Json http://localhost:11434 OLLAMA_API_KEY free",
            ),
            (
                "litellm_proxy/zai/glm-4.7",
                "litellm_proxy zai/glm-4.7 Chat Json nowhere LITELLM_PROXY_API_KEY free",
            ),
            (
                "glm-4.7",
                "`glm-4.7` has no provider prefix, such as `openai/glm-4.7`",
            ),
            (
                "acme/one",
                "provider `acme` of model `acme/one` is unknown, and no `api_base` is configured",
            ),
        ] {
            assert_eq!(
                endpoint_text(&ModelChoice::for_model(name)),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_profile_overrides_the_provider_table() {
        let base = || Some("http://localhost:8000/v1".to_owned());
        let own = ModelChoice {
            api_base: base(),
            ..ModelChoice::for_model("openai/qwen")
        };
        assert_eq!(
            endpoint_text(&own),
            "openai qwen Chat Json http://localhost:8000/v1 OPENAI_API_KEY free"
        );
        let acme = ModelChoice {
            api_base: base(),
            wire: Some(WireApi::Messages),
            reply_format: Some(ReplyFormat::Text),
            ..ModelChoice::for_model("ac-me/one")
        };
        assert_eq!(
            endpoint_text(&acme),
            "ac-me one Messages Text http://localhost:8000/v1 AC_ME_API_KEY free"
        );
        let keyed = ModelChoice {
            api_key_env: Some("WORK_API_KEY".into()),
            ..acme
        };
        assert_eq!(
            endpoint_text(&keyed),
            "ac-me one Messages Text http://localhost:8000/v1 WORK_API_KEY key"
        );
    }

    #[test]
    fn providers_are_unique_and_sorted() {
        assert!(PROVIDERS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
