//! Sends one request and reads its response, with limits on time and size.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use ralph_providers::http::{HttpClient, HttpError, ProxySettings, StreamedResponse};

use super::base_url::BaseUrl;

/// The timeout of the whole exchange.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The size limit of a response body, in bytes.
const MAX_BODY_BYTES: usize = 64 << 10;

/// The response to a request.
#[derive(Debug)]
pub struct TokenHttpResponse {
    pub status: u16,
    /// The body; empty if it is too long or incomplete.
    pub body: Bytes,
}

/// Posts JSON to a path below an address. Does not follow redirects: the credential is for this
/// host.
pub(super) async fn post(
    base: &BaseUrl,
    path: &str,
    fields: Vec<(HeaderName, HeaderValue)>,
    body: String,
) -> io::Result<TokenHttpResponse> {
    let request = Request::post(format!("{base}{path}"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::from(body));
    let mut request = request.map_err(io::Error::other)?;
    request.headers_mut().extend(fields);
    exchange(request).await
}

/// Gets the document at a path below an address.
pub async fn get(base: &BaseUrl, path: &str) -> io::Result<TokenHttpResponse> {
    get_with(base, path, Vec::new()).await
}

/// Gets the document at a path below an address with these headers.
pub(super) async fn get_with(
    base: &BaseUrl,
    path: &str,
    fields: Vec<(HeaderName, HeaderValue)>,
) -> io::Result<TokenHttpResponse> {
    let request = Request::get(format!("{base}{path}")).body(Full::default());
    let mut request = request.map_err(io::Error::other)?;
    request.headers_mut().extend(fields);
    exchange(request).await
}

async fn exchange(request: Request<Full<Bytes>>) -> io::Result<TokenHttpResponse> {
    let client = HttpClient::new(&ProxySettings::default(), TIMEOUT).map_err(io::Error::other)?;
    let exchange = async {
        let response = client.send(request).await;
        let response = response.map_err(|error| io::Error::other(error.root_cause()))?;
        let status = response.status().as_u16();
        // The content of a long or broken body is irrelevant.
        let body = read_body(response).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot read the body of a response");
            None
        });
        Ok(TokenHttpResponse {
            status,
            body: body.unwrap_or_default(),
        })
    };
    tokio::time::timeout(TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Returns the whole body, or `None` if it is too long.
async fn read_body(mut response: StreamedResponse) -> Result<Option<Bytes>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body.into()))
}
