//! Which parameters a question carries: what the profile wants, minus what the model does not take.

use ralph_core::profile::{ReplyFormat, Wire};

use super::settings::HttpSettings;

/// Which parameters a question carries.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameters {
    /// How much chance is in the answer.
    pub(super) temperature: Option<f64>,
    /// How long an answer may be.
    pub(super) output_limit: Option<u64>,
    /// What that is called.
    pub(super) limit_name: LimitName,
    /// How the provider is told what an answer looks like.
    pub(super) format: ReplyFormat,
    /// Whether a stream is asked to count its tokens.
    pub(super) counts_in_stream: bool,
}

/// What the limit of an answer is called by the chat completions of different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitName {
    MaxTokens,
    MaxCompletionTokens,
}

impl LimitName {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// What providers say about a parameter that they do not take.
const REFUSING: [&str; 14] = [
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

const OF_FORMAT: [&str; 9] = [
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

impl Parameters {
    /// Returns what is sent before anybody has refused anything.
    pub(super) fn of(settings: &HttpSettings) -> Self {
        let endpoint = &settings.endpoint;
        let thinks = is_reasoning(&endpoint.model);
        let is_openai = matches!(endpoint.provider.as_str(), "openai" | "litellm_proxy");
        let name = if thinks && is_openai {
            LimitName::MaxCompletionTokens
        } else {
            LimitName::MaxTokens
        };
        Self {
            temperature: settings.temperature.filter(|_| !thinks),
            output_limit: settings.max_output_tokens.map(u64::from),
            limit_name: name,
            format: endpoint.format,
            counts_in_stream: true,
        }
    }

    /// Leaves out what a refusal names; false if it names nothing that was sent.
    pub(super) fn adapt(&mut self, refusal: &str, wire: Wire) -> bool {
        let refusal = refusal.to_lowercase();
        if !REFUSING.iter().any(|word| refusal.contains(word)) {
            return false;
        }
        if self.temperature.is_some() && refusal.contains("temperature") {
            self.temperature = None;
            return true;
        }
        if self.counts_in_stream && refusal.contains("stream_options") {
            self.counts_in_stream = false;
            return true;
        }
        if OF_FORMAT.iter().any(|word| refusal.contains(word)) {
            return self.ask_for_less_format(wire);
        }
        match self.limit_name {
            LimitName::MaxTokens if refusal.contains("max_tokens") => {
                self.limit_name = LimitName::MaxCompletionTokens;
                wire == Wire::Chat && refusal.contains("max_completion_tokens")
            }
            LimitName::MaxCompletionTokens if refusal.contains("max_completion_tokens") => {
                self.limit_name = LimitName::MaxTokens;
                wire == Wire::Chat
            }
            LimitName::MaxTokens | LimitName::MaxCompletionTokens => false,
        }
    }

    fn ask_for_less_format(&mut self, wire: Wire) -> bool {
        let before = self.format;
        self.format = match (before, wire) {
            (ReplyFormat::Schema, Wire::Chat | Wire::Responses | Wire::Gemini) => ReplyFormat::Json,
            (ReplyFormat::Schema, Wire::Messages) | (ReplyFormat::Json | ReplyFormat::Text, _) => {
                ReplyFormat::Text
            }
        };
        self.format != before
    }
}

/// Tells whether a model is one of those that think first and take no temperature.
fn is_reasoning(model: &str) -> bool {
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
    fn models_that_think_are_known() {
        for (model, thinks) in [
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
            assert_eq!(is_reasoning(model), thinks, "{model}");
        }
    }

    fn all() -> Parameters {
        Parameters {
            temperature: Some(0.2),
            output_limit: Some(100),
            limit_name: LimitName::MaxTokens,
            format: ReplyFormat::Schema,
            counts_in_stream: true,
        }
    }

    #[test]
    fn what_is_refused_is_left_out() {
        for (refusal, wire, expected) in [
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model.",
                Wire::Chat,
                Some(Parameters {
                    temperature: None,
                    ..all()
                }),
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Wire::Chat,
                Some(Parameters {
                    limit_name: LimitName::MaxCompletionTokens,
                    ..all()
                }),
            ),
            (
                "litellm.UnsupportedParamsError: zai does not support parameters: ['response_format']",
                Wire::Chat,
                Some(Parameters {
                    format: ReplyFormat::Json,
                    ..all()
                }),
            ),
            (
                "output_config: Extra inputs are not permitted",
                Wire::Messages,
                Some(Parameters {
                    format: ReplyFormat::Text,
                    ..all()
                }),
            ),
            (
                "unknown field `stream_options`",
                Wire::Chat,
                Some(Parameters {
                    counts_in_stream: false,
                    ..all()
                }),
            ),
            ("max_tokens is too large: 200000", Wire::Chat, None),
            ("Unsupported country", Wire::Chat, None),
            ("temperature is nice", Wire::Chat, None),
        ] {
            let mut parameters = all();
            let adapted = parameters.adapt(refusal, wire);
            let seen = adapted.then_some(parameters);
            assert_eq!(seen, expected, "{refusal}");
        }
    }

    #[test]
    fn a_format_is_given_up_step_by_step() {
        let mut parameters = all();
        let refusal = "response_format is not supported";
        assert!(parameters.adapt(refusal, Wire::Chat));
        assert_eq!(parameters.format, ReplyFormat::Json);
        assert!(parameters.adapt(refusal, Wire::Chat));
        assert_eq!(parameters.format, ReplyFormat::Text);
        assert!(!parameters.adapt(refusal, Wire::Chat));
    }
}
