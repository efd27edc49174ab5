//! Asks an API whether it takes a credential, with the smallest request there is.

use std::io;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::address::BaseUrl;
use super::agent::{Agent, AuthMode, Slot, Wire};
use super::http::{self, Answer};
use super::token::Token;

const ANTHROPIC_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// Without it the API takes no token of a subscription.
const OAUTH_BETA: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-beta"),
    HeaderValue::from_static("oauth-2025-04-20"),
);

/// Why a credential is not known to be good.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The API refused it.
    #[error("{address} answered {status}")]
    Rejected {
        /// The API.
        address: BaseUrl,
        /// What it answered.
        status: u16,
    },
    /// The API answered something that says nothing about it.
    #[error("{address} answered {status}, which says nothing about the token")]
    Unclear {
        /// The API.
        address: BaseUrl,
        /// What it answered.
        status: u16,
    },
    /// The API was not reached.
    #[error("{address} cannot be reached: {source}")]
    Unreachable {
        /// The API.
        address: BaseUrl,
        /// Why.
        source: io::Error,
    },
    /// Nobody knows how to ask.
    #[error("ralph does not know the API of this agent")]
    NoApi,
    /// A gateway's key without the gateway's address.
    #[error("a gateway needs an address")]
    NoAddress,
}

/// Asks the API that a credential is for whether it takes it.
pub async fn validate(slot: &Slot, token: &Token) -> Result<(), ProbeError> {
    let wire = Agent::of(&slot.agent).wire.ok_or(ProbeError::NoApi)?;
    let address = match (&token.base_url, slot.mode) {
        (Some(address), _) => address.clone(),
        (None, AuthMode::Gateway) => return Err(ProbeError::NoAddress),
        (None, AuthMode::Oauth | AuthMode::ApiKey) => own_api(wire)?,
    };
    let (path, body) = smallest_request(wire, token.model_prefix.as_deref().unwrap_or_default());
    let fields = fields(wire, slot.mode, token)?;
    let answer = http::post(&address, path, fields, body.to_string()).await;
    match answer {
        Ok(answer) => judge(address, &answer),
        Err(source) => Err(ProbeError::Unreachable { address, source }),
    }
}

fn own_api(wire: Wire) -> Result<BaseUrl, ProbeError> {
    let address = match wire {
        Wire::AnthropicMessages => "https://api.anthropic.com",
        Wire::OpenAiResponses | Wire::OpenAiChat => "https://api.openai.com/v1",
    };
    BaseUrl::parse(address).map_err(|_| ProbeError::NoAddress)
}

fn smallest_request(wire: Wire, prefix: &str) -> (&'static str, Value) {
    let message = json!([{"role": "user", "content": "ok"}]);
    match wire {
        Wire::AnthropicMessages => (
            "/v1/messages",
            json!({"model": format!("{prefix}claude-haiku-4-5"), "max_tokens": 1, "messages": message}),
        ),
        Wire::OpenAiResponses => (
            "/responses",
            json!({"model": format!("{prefix}gpt-5-nano"), "max_output_tokens": 16, "input": "ok"}),
        ),
        Wire::OpenAiChat => (
            "/chat/completions",
            json!({"model": format!("{prefix}gpt-5-nano"), "max_completion_tokens": 16, "messages": message}),
        ),
    }
}

fn fields(
    wire: Wire,
    mode: AuthMode,
    token: &Token,
) -> Result<Vec<(HeaderName, HeaderValue)>, ProbeError> {
    let hidden = |text: String| {
        // A token has only characters that a header takes, so this never fails.
        let mut value = HeaderValue::from_str(&text).map_err(|_| ProbeError::NoApi)?;
        value.set_sensitive(true);
        Ok(value)
    };
    let secret = token.secret.expose();
    let bearer = || hidden(format!("Bearer {secret}")).map(|value| (AUTHORIZATION, value));
    let key = HeaderName::from_static("x-api-key");
    Ok(match (wire, mode) {
        (Wire::AnthropicMessages, AuthMode::Oauth) => {
            vec![ANTHROPIC_VERSION, OAUTH_BETA, bearer()?]
        }
        (Wire::AnthropicMessages, AuthMode::ApiKey) => {
            vec![ANTHROPIC_VERSION, (key, hidden(secret.to_owned())?)]
        }
        (Wire::AnthropicMessages, AuthMode::Gateway) => vec![ANTHROPIC_VERSION, bearer()?],
        (Wire::OpenAiResponses | Wire::OpenAiChat, _) => vec![bearer()?],
    })
}

/// Judges by the status alone. The words of the answer are not repeated: they may repeat the token.
fn judge(address: BaseUrl, answer: &Answer) -> Result<(), ProbeError> {
    let status = answer.status;
    match status {
        // Whoever complains about the request, the quota or the money knows who asks.
        200..=299 | 400 | 402 | 422 | 429 => Ok(()),
        // The model of the request may be gone one day; a place without an API says it otherwise.
        404 if says_why(&answer.body) => Ok(()),
        401 | 403 => Err(ProbeError::Rejected { address, status }),
        _ => Err(ProbeError::Unclear { address, status }),
    }
}

fn says_why(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|body: Value| body["error"].is_object())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn only_an_answer_to_the_credential_counts() {
        let why = r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#;
        for (status, body, told) in [
            (200, "{}", "taken"),
            (400, "", "taken"),
            (402, "", "taken"),
            (429, "", "taken"),
            (404, why, "taken"),
            (
                404,
                "<html>",
                "https://gw.example answered 404, which says nothing about the token",
            ),
            (401, why, "https://gw.example answered 401"),
            (403, "", "https://gw.example answered 403"),
            (
                301,
                "",
                "https://gw.example answered 301, which says nothing about the token",
            ),
            (
                503,
                "",
                "https://gw.example answered 503, which says nothing about the token",
            ),
        ] {
            let answer = Answer {
                status,
                body: Bytes::from(body),
            };
            let judged = judge(BaseUrl::parse("https://gw.example").unwrap(), &answer);
            let judged = judged.map_or_else(|error| error.to_string(), |()| "taken".to_owned());
            assert_eq!(judged, told);
        }
    }
}
