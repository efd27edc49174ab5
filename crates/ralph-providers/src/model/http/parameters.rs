//! Request parameters: those of the profile, minus those the model rejects.

use ralph_core::profile::{ReplyFormat, WireApi};

use super::settings::HttpModelSettings;

/// The parameters of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestParameters {
    pub(super) temperature: Option<f64>,
    pub(super) output_limit: Option<u64>,
    /// The name of the output limit parameter.
    pub(super) limit_key: OutputLimitKey,
    /// How the reply format is requested.
    pub(super) format: ReplyFormat,
    /// Whether a stream is asked to include token counts.
    pub(super) counts_in_stream: bool,
}

/// The name of the output limit in different versions of chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputLimitKey {
    MaxTokens,
    MaxCompletionTokens,
}

impl OutputLimitKey {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Error phrases for unsupported parameters.
const UNSUPPORTED_PHRASES: [&str; 14] = [
    "unsupported",
    "not supported",
    "not support",
    "unknown",
    "unrecognized",
    "unrecognised",
    "not permitted",
    "not allowed",
    "deprecated",
    "unexpected",
    "invalid",
    "extra inputs",
    "only the default",
    "cannot find field",
];

const FORMAT_PHRASES: [&str; 9] = [
    "response_format",
    "json_schema",
    "json_object",
    "text.format",
    "output_config",
    "output_format",
    "structured output",
    "mime_type",
    "mimetype",
];

impl RequestParameters {
    /// Returns the parameters of the first request.
    pub(super) fn from_settings(settings: &HttpModelSettings) -> Self {
        let endpoint = &settings.endpoint;
        let is_reasoning = is_reasoning_model(&endpoint.model);
        let is_openai = matches!(endpoint.provider.as_str(), "openai" | "litellm_proxy");
        let limit_key = if is_reasoning && is_openai {
            OutputLimitKey::MaxCompletionTokens
        } else {
            OutputLimitKey::MaxTokens
        };
        Self {
            temperature: settings.temperature.filter(|_| !is_reasoning),
            output_limit: settings.max_output_tokens.map(u64::from),
            limit_key,
            format: endpoint.format,
            counts_in_stream: true,
        }
    }

    /// Drops or changes one parameter that an error message names as unsupported; returns whether a
    /// new request may succeed.
    pub(super) fn adapt(&mut self, message: &str, wire: WireApi) -> bool {
        let message = message.to_lowercase();
        if !UNSUPPORTED_PHRASES
            .iter()
            .any(|word| message.contains(word))
        {
            return false;
        }
        if self.temperature.is_some() && message.contains("temperature") {
            self.temperature = None;
            return true;
        }
        if self.counts_in_stream && message.contains("stream_options") {
            self.counts_in_stream = false;
            return true;
        }
        if FORMAT_PHRASES.iter().any(|word| message.contains(word)) {
            return self.relax_format(wire);
        }
        if wire != WireApi::Chat || !message.contains("max_completion_tokens") {
            return false;
        }
        match self.limit_key {
            OutputLimitKey::MaxTokens if message.contains("max_tokens") => {
                self.limit_key = OutputLimitKey::MaxCompletionTokens;
                true
            }
            OutputLimitKey::MaxTokens => false,
            OutputLimitKey::MaxCompletionTokens => {
                self.limit_key = OutputLimitKey::MaxTokens;
                true
            }
        }
    }

    fn relax_format(&mut self, wire: WireApi) -> bool {
        let before = self.format;
        self.format = match (before, wire) {
            (ReplyFormat::Schema, WireApi::Chat | WireApi::Responses | WireApi::Gemini) => {
                ReplyFormat::Json
            }
            (ReplyFormat::Schema, WireApi::Messages)
            | (ReplyFormat::Json | ReplyFormat::Text, _) => ReplyFormat::Text,
        };
        self.format != before
    }
}

/// Returns whether a model is a reasoning model that does not accept a temperature.
fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let mut letters = name.chars();
    let is_o = letters.next() == Some('o')
        && letters.next().is_some_and(|c| c.is_ascii_digit())
        && matches!(letters.next(), None | Some('-'));
    let is_chat = name.contains("-chat");
    let is_late = ["gpt-5", "gpt-6", "codex-"]
        .iter()
        .any(|start| name.starts_with(start));
    (is_o || is_late) && !is_chat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_models_are_recognised() {
        for (model, is_reasoning) in [
            ("gpt-5", true),
            ("gpt-5.1-codex-max", true),
            ("openai/gpt-5-mini", true),
            ("o3", true),
            ("o4-mini", true),
            ("gpt-5-chat-latest", false),
            ("gpt-4o", false),
            ("olmo-2", false),
            ("o200k", false),
            ("glm-4.7", false),
        ] {
            assert_eq!(is_reasoning_model(model), is_reasoning, "{model}");
        }
    }

    fn all_parameters() -> RequestParameters {
        RequestParameters {
            temperature: Some(0.2),
            output_limit: Some(100),
            limit_key: OutputLimitKey::MaxTokens,
            format: ReplyFormat::Schema,
            counts_in_stream: true,
        }
    }

    #[test]
    fn rejected_parameters_are_left_out() {
        for (message, wire, expected) in [
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model.",
                WireApi::Chat,
                Some(RequestParameters {
                    temperature: None,
                    ..all_parameters()
                }),
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                WireApi::Chat,
                Some(RequestParameters {
                    limit_key: OutputLimitKey::MaxCompletionTokens,
                    ..all_parameters()
                }),
            ),
            (
                "litellm.UnsupportedParamsError: zai does not support parameters: ['response_format']",
                WireApi::Chat,
                Some(RequestParameters {
                    format: ReplyFormat::Json,
                    ..all_parameters()
                }),
            ),
            (
                "output_config: Extra inputs are not permitted",
                WireApi::Messages,
                Some(RequestParameters {
                    format: ReplyFormat::Text,
                    ..all_parameters()
                }),
            ),
            (
                "unknown field `stream_options`",
                WireApi::Chat,
                Some(RequestParameters {
                    counts_in_stream: false,
                    ..all_parameters()
                }),
            ),
            ("Unsupported: 'max_tokens'", WireApi::Chat, None),
            ("max_tokens is too large: 200000", WireApi::Chat, None),
            ("Unsupported country", WireApi::Chat, None),
            ("temperature is nice", WireApi::Chat, None),
        ] {
            let mut parameters = all_parameters();
            let adapted = parameters.adapt(message, wire);
            assert_eq!(adapted, expected.is_some(), "{message}");
            let expected = expected.unwrap_or_else(all_parameters);
            assert_eq!(parameters, expected, "{message}");
        }
    }

    #[test]
    fn the_format_is_relaxed_step_by_step() {
        let mut parameters = all_parameters();
        let message = "response_format is not supported";
        assert!(parameters.adapt(message, WireApi::Chat));
        assert_eq!(parameters.format, ReplyFormat::Json);
        assert!(parameters.adapt(message, WireApi::Chat));
        assert_eq!(parameters.format, ReplyFormat::Text);
        assert!(!parameters.adapt(message, WireApi::Chat));
    }
}
