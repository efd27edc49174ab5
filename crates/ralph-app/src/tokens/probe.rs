//! Validates a credential by sending a minimal request to its API.

use std::io;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::agent::{AgentAuth, AgentWire, AuthMode, TokenSlot};
use super::base_url::BaseUrl;
use super::http::{self, TokenHttpResponse};
use super::token::AuthToken;

const ANTHROPIC_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// The API accepts tokens of a subscription only with this header.
const OAUTH_BETA: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-beta"),
    HeaderValue::from_static("oauth-2025-04-20"),
);

/// The address of GitHub's API.
pub const GITHUB_API: &str = "https://api.github.com";

/// The reason why a credential could not be validated.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The API rejected the credential.
    #[error("{address} answered {status}")]
    Rejected { address: BaseUrl, status: u16 },
    /// The response says nothing about the credential.
    #[error("{address} answered {status}, which does not show whether the token is valid")]
    Unclear { address: BaseUrl, status: u16 },
    /// The API was not reached.
    #[error("{address} cannot be reached: {source}")]
    Unreachable { address: BaseUrl, source: io::Error },
    /// The API of the agent is unknown.
    #[error("ralph does not know the API of this agent")]
    NoApi,
    /// The key of a gateway has no address.
    #[error("a gateway needs an address")]
    NoAddress,
}

/// Validates a credential with its API.
pub async fn validate(slot: &TokenSlot, token: &AuthToken) -> Result<(), ProbeError> {
    if slot.agent.as_str() == AgentAuth::GITHUB {
        return validate_github(token).await;
    }
    let wire = AgentAuth::for_agent(&slot.agent)
        .wire
        .ok_or(ProbeError::NoApi)?;
    let address = match (&token.base_url, slot.mode) {
        (Some(address), _) => address.clone(),
        (None, AuthMode::Gateway) => return Err(ProbeError::NoAddress),
        (None, AuthMode::Oauth | AuthMode::ApiKey) => {
            BaseUrl::parse(wire.default_api()).map_err(|_| ProbeError::NoAddress)?
        }
    };
    let (path, body) = minimal_request(wire, token.model_prefix.as_deref().unwrap_or_default());
    let fields = auth_headers(wire, slot.mode, token)?;
    let response = http::post(&address, path, fields, body.to_string()).await;
    match response {
        Ok(response) => check_response(address, &response),
        Err(source) => Err(ProbeError::Unreachable { address, source }),
    }
}

/// Validates a token of GitHub. GitHub answers 401 to an invalid token, and 403 to a valid one that
/// may not read its user.
async fn validate_github(token: &AuthToken) -> Result<(), ProbeError> {
    let address = match &token.base_url {
        Some(address) => address.clone(),
        None => BaseUrl::parse(GITHUB_API).map_err(|_| ProbeError::NoAddress)?,
    };
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.secret.expose()))
        .map_err(|_| ProbeError::NoApi)?;
    bearer.set_sensitive(true);
    match http::get_with(&address, "/user", vec![(AUTHORIZATION, bearer)]).await {
        Ok(TokenHttpResponse {
            status: 200 | 403, ..
        }) => Ok(()),
        Ok(TokenHttpResponse { status: 401, .. }) => Err(ProbeError::Rejected {
            address,
            status: 401,
        }),
        Ok(TokenHttpResponse { status, .. }) => Err(ProbeError::Unclear { address, status }),
        Err(source) => Err(ProbeError::Unreachable { address, source }),
    }
}

fn minimal_request(wire: AgentWire, prefix: &str) -> (&'static str, Value) {
    let message = json!([{"role": "user", "content": "ok"}]);
    match wire {
        AgentWire::AnthropicMessages => (
            "/v1/messages",
            json!({"model": format!("{prefix}claude-haiku-4-5"), "max_tokens": 1, "messages": message}),
        ),
        AgentWire::OpenAiResponses => (
            "/responses",
            json!({"model": format!("{prefix}gpt-5-nano"), "max_output_tokens": 16, "input": "ok"}),
        ),
        AgentWire::OpenAiChat => (
            "/chat/completions",
            json!({"model": format!("{prefix}gpt-5-nano"), "max_completion_tokens": 16, "messages": message}),
        ),
    }
}

fn auth_headers(
    wire: AgentWire,
    mode: AuthMode,
    token: &AuthToken,
) -> Result<Vec<(HeaderName, HeaderValue)>, ProbeError> {
    let sensitive = |text: String| {
        // A token has only valid header characters, so this never fails.
        let mut value = HeaderValue::from_str(&text).map_err(|_| ProbeError::NoApi)?;
        value.set_sensitive(true);
        Ok(value)
    };
    let secret = token.secret.expose();
    let bearer = || sensitive(format!("Bearer {secret}")).map(|value| (AUTHORIZATION, value));
    let key = HeaderName::from_static("x-api-key");
    Ok(match (wire, mode) {
        (AgentWire::AnthropicMessages, AuthMode::Oauth) => {
            vec![ANTHROPIC_VERSION, OAUTH_BETA, bearer()?]
        }
        (AgentWire::AnthropicMessages, AuthMode::ApiKey) => {
            vec![ANTHROPIC_VERSION, (key, sensitive(secret.to_owned())?)]
        }
        (AgentWire::AnthropicMessages, AuthMode::Gateway) => vec![ANTHROPIC_VERSION, bearer()?],
        (AgentWire::OpenAiResponses | AgentWire::OpenAiChat, _) => vec![bearer()?],
    })
}

/// Decides by the status, and for 404 also by the form of the body. The error does not contain the
/// body, because that may repeat the token.
fn check_response(address: BaseUrl, response: &TokenHttpResponse) -> Result<(), ProbeError> {
    let status = response.status;
    match status {
        // An API that rejects the request, the quota or the payment has recognized the credential.
        200..=299 | 400 | 402 | 422 | 429 => Ok(()),
        // The model of the request may disappear; a server without the API responds differently.
        404 if has_error_body(&response.body) => Ok(()),
        401 | 403 => Err(ProbeError::Rejected { address, status }),
        _ => Err(ProbeError::Unclear { address, status }),
    }
}

fn has_error_body(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|body: Value| body["error"].is_object())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn only_a_verdict_on_the_credential_counts() {
        let why = r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#;
        for (status, body, expected) in [
            (200, "{}", "taken"),
            (400, "", "taken"),
            (402, "", "taken"),
            (429, "", "taken"),
            (404, why, "taken"),
            (
                404,
                "<html>",
                "https://gw.example answered 404, which does not show whether the token is valid",
            ),
            (401, why, "https://gw.example answered 401"),
            (403, "", "https://gw.example answered 403"),
            (
                301,
                "",
                "https://gw.example answered 301, which does not show whether the token is valid",
            ),
            (
                503,
                "",
                "https://gw.example answered 503, which does not show whether the token is valid",
            ),
        ] {
            let response = TokenHttpResponse {
                status,
                body: Bytes::from(body),
            };
            let judged = check_response(BaseUrl::parse("https://gw.example").unwrap(), &response);
            let judged = judged.map_or_else(|error| error.to_string(), |()| "taken".to_owned());
            assert_eq!(judged, expected);
        }
    }
}
