//! The HTTP client of ralph: HTTP/1.1 over TCP or TLS, directly or through a proxy.
//!
//! It trusts the certificates of this machine, `SSL_CERT_FILE` and `SSL_CERT_DIR` included, decodes gzip and
//! follows no redirect. The gate has a client of its own, because it connects to addresses that it has checked.

pub(crate) mod certificate;
mod connector;
mod response;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT_ENCODING, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::client::legacy;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use connector::{DirectConnector, ProxyConnector};
pub use response::StreamedResponse;

/// The proxies of a client, with the values of the usual environment variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxy for `https` addresses.
    pub https_proxy: Option<String>,
    /// The proxy for `http` addresses.
    pub http_proxy: Option<String>,
    /// The hosts that are reached without a proxy.
    pub no_proxy: Option<String>,
}

/// The address of a proxy is not valid. The message does not repeat it, since it may have a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address of the proxy for `{scheme}` is not valid")]
pub struct ProxyAddressError {
    scheme: &'static str,
}

/// The reason why a request has no complete response.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// There was no connection, so nothing was sent.
    #[error("no connection")]
    Connect(#[source] legacy::Error),
    /// The connection failed before the response began.
    #[error("no response")]
    Request(#[source] legacy::Error),
    /// The connection failed in the middle of the response.
    #[error("the response is not complete")]
    Body(#[source] hyper::Error),
    /// The response is not encoded as its header says.
    #[error("the response cannot be decoded")]
    Encoding(#[source] std::io::Error),
}

impl HttpError {
    /// Returns the innermost cause, which is the only one that helps a user.
    pub fn root_cause(&self) -> String {
        let mut cause: &dyn std::error::Error = self;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    }
}

/// Sends requests and reuses connections.
#[derive(Clone)]
pub struct HttpClient {
    client: legacy::Client<ProxyConnector, Full<Bytes>>,
    proxies: Arc<Matcher>,
}

impl HttpClient {
    /// Creates a client. `connect_timeout` includes the connection to a proxy and the TLS handshake.
    pub fn new(
        network: &ProxySettings,
        connect_timeout: Duration,
    ) -> Result<Self, ProxyAddressError> {
        let proxies = Arc::new(proxies(network)?);
        let connector = ProxyConnector {
            direct: DirectConnector::new(),
            proxies: proxies.clone(),
            timeout: connect_timeout,
        };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client, proxies })
    }

    /// Sends a request to an absolute address and returns its response as soon as the head has arrived.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<StreamedResponse, HttpError> {
        let authorization = self.proxy_authorization(request.uri());
        let headers = request.headers_mut();
        let agent = HeaderValue::from_static(concat!("ralph/", env!("CARGO_PKG_VERSION")));
        headers.insert(USER_AGENT, agent);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(value) = authorization {
            headers.insert(PROXY_AUTHORIZATION, value);
        }
        match self.client.request(request).await {
            Ok(response) => Ok(StreamedResponse::new(response)),
            Err(error) if error.is_connect() => Err(HttpError::Connect(error)),
            Err(error) => Err(HttpError::Request(error)),
        }
    }

    /// Returns the credential for the proxy of an `http` address. For `https`, the tunnel sends it.
    fn proxy_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        if uri.scheme_str() != Some("http") {
            return None;
        }
        self.proxies.intercept(uri)?.basic_auth().cloned()
    }
}

fn proxies(network: &ProxySettings) -> Result<Matcher, ProxyAddressError> {
    let address = |address: &Option<String>| address.clone().unwrap_or_default();
    let (http, https) = (address(&network.http_proxy), address(&network.https_proxy));
    // The matcher ignores an address that it cannot parse, which would bypass the proxy.
    let all = Matcher::builder()
        .http(http.clone())
        .https(https.clone())
        .build();
    for (scheme, address, probe) in [
        ("http", &http, Uri::from_static("http://host.invalid/")),
        ("https", &https, Uri::from_static("https://host.invalid/")),
    ] {
        let found = all.intercept(&probe);
        let is_http =
            found.is_some_and(|proxy| matches!(proxy.uri().scheme_str(), Some("http" | "https")));
        if !address.is_empty() && !is_http {
            return Err(ProxyAddressError { scheme });
        }
    }
    let no_proxy = network.no_proxy.clone().unwrap_or_default();
    Ok(Matcher::builder()
        .http(http)
        .https(https)
        .no(no_proxy)
        .build())
}

#[cfg(test)]
mod tests;
