//! The HTTP client of one model: who it is allowed to talk to, and what it shows of itself.

use std::sync::Once;
use std::time::Duration;

use ralph_core::profile::WireApi;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};

use super::settings::{ApiCredential, HttpModelSettings, HttpModelSettingsError, ProxySettings};

/// Makes the client. It follows no redirect: a credential is for one host only.
pub(super) fn model_client(settings: &HttpModelSettings) -> Result<Client, HttpModelSettingsError> {
    client_builder(&settings.network)?
        .default_headers(headers(settings)?)
        .redirect(Policy::none())
        .connect_timeout(settings.timeouts.connect)
        .build()
        .map_err(|error| client_error(&error))
}

/// Makes a client that has no credential.
pub(crate) fn plain_client(
    network: &ProxySettings,
    timeout: Duration,
    redirects: Policy,
) -> Result<Client, HttpModelSettingsError> {
    client_builder(network)?
        .redirect(redirects)
        .timeout(timeout)
        .build()
        .map_err(|error| client_error(&error))
}

fn client_builder(network: &ProxySettings) -> Result<ClientBuilder, HttpModelSettingsError> {
    static INSTALL_CRYPTO_PROVIDER: Once = Once::new();
    // Somebody else may have chosen already, which is as good.
    INSTALL_CRYPTO_PROVIDER.call_once(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
    });
    let mut builder = Client::builder()
        .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")))
        .no_proxy();
    for proxy in proxies(network)? {
        builder = builder.proxy(proxy);
    }
    Ok(builder)
}

fn client_error(error: &reqwest::Error) -> HttpModelSettingsError {
    HttpModelSettingsError::Client(error.to_string())
}

fn proxies(network: &ProxySettings) -> Result<Vec<Proxy>, HttpModelSettingsError> {
    let without = network.no_proxy.as_deref().and_then(NoProxy::from_string);
    let mut proxies = Vec::new();
    if let Some(address) = &network.https_proxy {
        proxies.push(Proxy::https(address).map_err(|error| client_error(&error))?);
    }
    if let Some(address) = &network.http_proxy {
        proxies.push(Proxy::http(address).map_err(|error| client_error(&error))?);
    }
    Ok(proxies
        .into_iter()
        .map(|proxy| proxy.no_proxy(without.clone()))
        .collect())
}

fn headers(settings: &HttpModelSettings) -> Result<HeaderMap, HttpModelSettingsError> {
    let mut headers = HeaderMap::new();
    let accept = HeaderValue::from_static("text/event-stream, application/json");
    headers.insert(ACCEPT, accept);
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
    let is_token = credential.variable.ends_with("AUTH_TOKEN");
    let (name, text) = match wire {
        WireApi::Messages if !is_token => (HeaderName::from_static("x-api-key"), key.to_owned()),
        WireApi::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        WireApi::Chat | WireApi::Responses | WireApi::Messages => {
            (AUTHORIZATION, format!("Bearer {key}"))
        }
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| HttpModelSettingsError::Key {
        variable: credential.variable.clone(),
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}
