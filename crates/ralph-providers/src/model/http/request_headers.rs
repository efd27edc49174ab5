//! The headers of requests to a model: what they accept, and the credential.

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ralph_core::profile::WireApi;

use super::settings::{ApiCredential, CredentialScheme, HttpModelSettings, HttpModelSettingsError};

/// Returns the headers of every request to a model.
pub(super) fn request_headers(
    settings: &HttpModelSettings,
) -> Result<HeaderMap, HttpModelSettingsError> {
    let mut headers = HeaderMap::new();
    let accept = HeaderValue::from_static("text/event-stream, application/json");
    headers.insert(ACCEPT, accept);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if settings.endpoint.wire == WireApi::Messages {
        let version = HeaderValue::from_static("2023-06-01");
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    if let Some(credential) = &settings.credential {
        let (name, value) = authorization(settings.endpoint.wire, credential)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn authorization(
    wire: WireApi,
    credential: &ApiCredential,
) -> Result<(HeaderName, HeaderValue), HttpModelSettingsError> {
    let key = credential.secret.expose().trim();
    let (name, text) = match (wire, credential.scheme) {
        (WireApi::Messages, CredentialScheme::ApiKey) => {
            (HeaderName::from_static("x-api-key"), key.to_owned())
        }
        (WireApi::Gemini, CredentialScheme::ApiKey | CredentialScheme::Bearer) => {
            (HeaderName::from_static("x-goog-api-key"), key.to_owned())
        }
        (
            WireApi::Chat | WireApi::Responses,
            CredentialScheme::ApiKey | CredentialScheme::Bearer,
        )
        | (WireApi::Messages, CredentialScheme::Bearer) => (AUTHORIZATION, format!("Bearer {key}")),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| HttpModelSettingsError::Key {
        variable: credential.source.clone(),
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}
