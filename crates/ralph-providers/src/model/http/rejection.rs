//! Parses error responses of providers and classifies them.

use std::time::Duration;

use ralph_core::parse_value;
use ralph_core::ports::{MAX_RETRY_WAIT, ModelError};
use ralph_guest::available;
use serde_json::Value;

use super::suggested_fix;

/// Maximum length of a reported provider message.
const MAX_MESSAGE_CHARS: usize = 300;

/// An error response of a provider.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProviderRejection {
    pub(super) status: u16,
    /// One line: the provider's message, or a description of the body.
    pub(super) message: String,
    /// The requested wait before a retry.
    pub(super) wait: Option<Duration>,
}

/// Phrases for an exhausted balance or plan, in lower case.
const QUOTA_PHRASES: [&str; 10] = [
    "insufficient_quota",
    "insufficient balance",
    "insufficient credits",
    "exceeded your current quota",
    "credit balance is too low",
    "usage limit",
    "quota exceeded",
    "quota_exceeded",
    "billing",
    "out of credits",
];

impl ProviderRejection {
    /// Parses an error body.
    pub(super) fn from_body(status: u16, body: &str, wait: Option<Duration>) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        let message = error_message(&value).unwrap_or_else(|| match body.trim_start().get(..1) {
            None => String::new(),
            Some("<") => "a web page instead of an answer".into(),
            Some(_) => body.to_owned(),
        });
        Self {
            status,
            message: one_line(&message),
            wait,
        }
    }

    /// Parses an error in place of a reply: `{"error": {…}}`, with or without a status.
    pub(super) fn from_error_value(error: &Value) -> Self {
        let code = ["code", "status_code", "http_status"]
            .iter()
            .find_map(|key| {
                let code = &error[*key];
                let number = || {
                    code.as_u64()
                        .and_then(|code| available(u16::try_from(code)))
                };
                let text = code.as_str().and_then(parse_value);
                text.or_else(number)
            })
            .filter(|code| (400..600).contains(code));
        let kind = error["type"].as_str().or(error["code"].as_str());
        let status = code.unwrap_or(match kind {
            Some("authentication_error" | "permission_error" | "invalid_api_key") => 401,
            Some("invalid_request_error" | "not_found_error") => 400,
            Some("rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota") => 429,
            Some("overloaded_error") => 529,
            Some(_) | None => 500,
        });
        let message = error_message(error).or_else(|| error.as_str().map(str::to_owned));
        Self {
            status,
            message: one_line(&message.unwrap_or_else(|| "an error without a message".into())),
            wait: None,
        }
    }

    /// Returns whether the request itself was rejected, so that a different one may succeed.
    pub(super) fn is_invalid_request(&self) -> bool {
        matches!(self.status, 400 | 422)
    }

    /// Converts the rejection to an error. `key` is the variable of the credential.
    pub(super) fn into_model_error(self, model: &str, key: Option<&str>) -> ModelError {
        let Self {
            status,
            message,
            wait,
        } = self;
        let model = model.to_owned();
        let lowercase = message.to_lowercase();
        let is_used_up = QUOTA_PHRASES.iter().any(|word| lowercase.contains(word));
        let takes_long = wait.is_some_and(|wait| wait > MAX_RETRY_WAIT);
        match status {
            402 => quota_error(model, wait, message),
            429 if takes_long || (wait.is_none() && is_used_up) => {
                quota_error(model, wait, message)
            }
            400 | 403 if is_used_up => quota_error(model, wait, message),
            401 | 403 => ModelError::Unauthorized {
                model,
                status,
                message,
                key: key.map(str::to_owned),
            },
            408 | 409 | 425 | 429 | 500..=599 => ModelError::Transient {
                model,
                status,
                retry_after: wait,
                message,
            },
            _ => ModelError::Broken {
                model,
                fix: suggested_fix::suggest_fix(status, &message),
                message: format!("status {status}, {message}"),
            },
        }
    }
}

fn quota_error(model: String, resets_in: Option<Duration>, message: String) -> ModelError {
    ModelError::QuotaUsedUp {
        model,
        resets_in,
        message,
    }
}

/// Finds the message of an error, with its type.
fn error_message(value: &Value) -> Option<String> {
    let value = value.get(0).unwrap_or(value);
    let error = value.get("error").unwrap_or(value);
    let message = ["message", "detail", "msg"]
        .iter()
        .find_map(|key| error[*key].as_str())
        .or_else(|| error.as_str())?;
    let kind = error["code"]
        .as_str()
        .or(error["type"].as_str())
        .filter(|kind| !message.contains(kind));
    Some(match kind {
        Some(kind) => format!("{kind}: {message}"),
        None => message.to_owned(),
    })
}

/// Returns one line without terminal control characters.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model_error_text(status: u16, body: &str, wait: Option<u64>) -> String {
        let rejection = ProviderRejection::from_body(status, body, wait.map(Duration::from_secs));
        match rejection.into_model_error("m", Some("M_API_KEY")) {
            ModelError::Transient {
                status,
                retry_after,
                message,
                ..
            } => format!("transient {status} {retry_after:?} {message}"),
            ModelError::Unauthorized {
                status,
                message,
                key,
                ..
            } => format!("unauthorized {status} {key:?} {message}"),
            ModelError::Broken { message, .. } => format!("broken {message}"),
            ModelError::QuotaUsedUp {
                resets_in, message, ..
            } => format!("quota {resets_in:?} {message}"),
            ModelError::CutOff { .. } => "cut off".into(),
        }
    }

    const QUOTA: &str =
        r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    const RATE: &str = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    const CREDIT: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#;
    const BALANCE: &str = r#"{"error":"Insufficient Balance"}"#;

    #[test]
    fn a_rate_limit_can_be_retried() {
        let used_up = "insufficient_quota: You exceeded your current quota";
        let slow = "rate_limit_error: slow down";
        for (status, body, wait, expected) in [
            (429, RATE, Some(5), format!("transient 429 Some(5s) {slow}")),
            (
                429,
                RATE,
                Some(18_000),
                format!("quota Some(18000s) {slow}"),
            ),
            (429, QUOTA, None, format!("quota None {used_up}")),
            (
                429,
                QUOTA,
                Some(34),
                format!("transient 429 Some(34s) {used_up}"),
            ),
            (402, BALANCE, None, "quota None Insufficient Balance".into()),
            (
                400,
                CREDIT,
                None,
                "quota None invalid_request_error: Your credit balance is too low".into(),
            ),
        ] {
            assert_eq!(model_error_text(status, body, wait), expected);
        }
    }

    #[test]
    fn other_rejections_are_classified_by_status() {
        let page = "a web page instead of an answer";
        for (status, body, wait, expected) in [
            (500, "", None, "transient 500 None ".to_owned()),
            (
                503,
                "<html>busy</html>",
                Some(3),
                format!("transient 503 Some(3s) {page}"),
            ),
            (
                401,
                r#"{"error":{"message":"bad key"}}"#,
                None,
                "unauthorized 401 Some(\"M_API_KEY\") bad key".into(),
            ),
            (
                403,
                "",
                None,
                "unauthorized 403 Some(\"M_API_KEY\") ".into(),
            ),
            (
                404,
                r#"{"detail":"no such model"}"#,
                None,
                "broken status 404, no such model".into(),
            ),
            (
                413,
                "too\n\u{1b}[31m large",
                None,
                "broken status 413, too [31m large".into(),
            ),
        ] {
            assert_eq!(model_error_text(status, body, wait), expected);
        }
        let long = "x".repeat(1000);
        assert_eq!(one_line(&long).chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
