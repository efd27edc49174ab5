//! Suggests the setting to change after a rejection.

/// Phrases for a prompt that is too long, in lower case.
const PROMPT_TOO_LONG_PHRASES: [&str; 9] = [
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many input tokens",
    "input token count",
    "request too large",
];

/// Phrases for a model that the provider does not have.
const UNKNOWN_MODEL_PHRASES: [&str; 9] = [
    "model_not_found",
    "model not found",
    "no such model",
    "no model",
    "unknown model",
    "invalid model",
    "not a valid model",
    "does not exist",
    "is not found",
];

/// Providers' parameter names, with the profile keys that set them.
const PARAMETER_KEYS: [(&str, &str); 13] = [
    ("temperature", "temperature"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("max_output_tokens", "max_output_tokens"),
    ("maxoutputtokens", "max_output_tokens"),
    ("response_format", "response_format"),
    ("json_schema", "response_format"),
    ("json_object", "response_format"),
    ("text.format", "response_format"),
    ("output_config", "response_format"),
    ("structured output", "response_format"),
    ("responsemimetype", "response_format"),
    ("mime_type", "response_format"),
];

/// Returns the setting to change after a rejection, as an imperative; `None` if the message does
/// not indicate one.
pub(super) fn suggest_fix(status: u16, message: &str) -> Option<String> {
    let lowercase = message.to_lowercase();
    let mentions = |known: &[&str]| known.iter().any(|word| lowercase.contains(word));
    if status == 413 || mentions(&PROMPT_TOO_LONG_PHRASES) {
        return Some(
            "lower `max_output_tokens` of its profile in `models.yaml`, or use a model with a larger context window"
                .into(),
        );
    }
    if lowercase.contains("model") && mentions(&UNKNOWN_MODEL_PHRASES) {
        return Some("correct `litellm_model` of its profile in `models.yaml`".into());
    }
    let parameter = PARAMETER_KEYS
        .iter()
        .find(|(word, _)| lowercase.contains(word));
    if let Some((_, key)) = parameter {
        return Some(format!("change `{key}` of its profile in `models.yaml`"));
    }
    matches!(status, 404 | 405)
        .then(|| "check `api_base` and `litellm_model` of its profile in `models.yaml`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_names_the_setting_to_change() {
        for (status, message, key) in [
            (
                400,
                "This model's maximum context length is 8192 tokens.",
                Some("lower `max_output_tokens`"),
            ),
            (
                400,
                "prompt is too long: 210000 tokens > 200000 maximum",
                Some("lower `max_output_tokens`"),
            ),
            (413, "", Some("lower `max_output_tokens`")),
            (
                404,
                "model_not_found: The model `gpt-9` does not exist",
                Some("correct `litellm_model`"),
            ),
            (
                404,
                "not_found_error: model: claude-9 is not found",
                Some("correct `litellm_model`"),
            ),
            (
                400,
                "max_tokens is too large: 200000",
                Some("change `max_output_tokens`"),
            ),
            (
                400,
                "Unsupported value: 'temperature' must be 1",
                Some("change `temperature`"),
            ),
            (
                400,
                "response_format is not supported",
                Some("change `response_format`"),
            ),
            (
                404,
                "404 page not found",
                Some("check `api_base` and `litellm_model`"),
            ),
            (400, "Unsupported country", None),
        ] {
            let found = suggest_fix(status, message);
            let starts = |key: &str| found.as_ref().is_some_and(|fix| fix.starts_with(key));
            assert!(key.map_or(found.is_none(), starts), "{message}: {found:?}");
        }
    }
}
