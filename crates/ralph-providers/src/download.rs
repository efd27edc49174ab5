//! Downloads a file from a URL given by the user: limited in size and time, without credentials.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, LOCATION};
use hyper::{Request, StatusCode};
use url::Url;

use crate::http::{HttpClient, HttpError, ProxySettings, StreamedResponse};

/// Time limit for a download.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Why a file cannot be downloaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// The URL is invalid.
    #[error("invalid URL: {0}")]
    Address(String),
    /// The URL uses plain HTTP, so the file could be modified in transit.
    #[error("it does not begin with `https://`, and `{0}` is not this machine")]
    Insecure(String),
    /// The URL contains a user name or password, which would be stored and shown.
    #[error("it contains a user name or password")]
    Credential,
    /// The server responded with an error status.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// The file exceeds the limit.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
}

/// Downloads at most `limit` bytes from an `https` URL, or from an `http` URL on this machine.
pub async fn download(
    address: &str,
    limit: usize,
    network: &ProxySettings,
) -> Result<Vec<u8>, DownloadError> {
    let url = parse_url(address)?;
    let client = HttpClient::new(network, TIMEOUT)
        .map_err(|error| DownloadError::Connection(error.to_string()))?;
    tokio::time::timeout(TIMEOUT, receive(&client, url, limit))
        .await
        .unwrap_or_else(|_| Err(DownloadError::Connection("operation timed out".into())))
}

async fn receive(client: &HttpClient, url: Url, limit: usize) -> Result<Vec<u8>, DownloadError> {
    let mut response = follow(client, url).await?;
    if response.status() != StatusCode::OK {
        return Err(DownloadError::Status(response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| connection_error(&error))?
    {
        if bytes.len() + chunk.len() > limit {
            return Err(DownloadError::TooLarge { limit });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn parse_url(address: &str) -> Result<Url, DownloadError> {
    let url = Url::parse(address).map_err(|error| DownloadError::Address(error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(DownloadError::Credential);
    }
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(host) => Ok(url),
        _ => Err(DownloadError::Insecure(host.to_owned())),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Sends a request and follows redirects, but only to `https` URLs.
async fn follow(client: &HttpClient, mut url: Url) -> Result<StreamedResponse, DownloadError> {
    let failed = |why: &str| DownloadError::Connection(why.to_owned());
    for _ in 0..=MAX_REDIRECTS {
        let response = get(client, &url).await?;
        let Some(target) = redirect_target(&response, &url) else {
            return Ok(response);
        };
        if target.scheme() != "https" {
            return Err(failed("redirected to an address without `https://`"));
        }
        url = target;
    }
    Err(failed("too many redirects"))
}

async fn get(client: &HttpClient, url: &Url) -> Result<StreamedResponse, DownloadError> {
    let request = Request::get(url.as_str())
        .header(ACCEPT, "*/*")
        .body(Full::<Bytes>::default())
        .map_err(|error| DownloadError::Address(error.to_string()))?;
    client
        .send(request)
        .await
        .map_err(|error| connection_error(&error))
}

/// Returns the address that a response redirects to, if it does.
fn redirect_target(response: &StreamedResponse, url: &Url) -> Option<Url> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    let target = std::str::from_utf8(location.as_bytes()).map(|text| url.join(text));
    match target {
        Ok(Ok(target)) => Some(target),
        Ok(Err(_)) | Err(_) => None,
    }
}

fn connection_error(error: &HttpError) -> DownloadError {
    DownloadError::Connection(error.root_cause())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_loopback_addresses_are_accepted() {
        for (address, expected) in [
            ("https://prices.example/map.json", None),
            ("http://127.0.0.1:80/map.json", None),
            ("http://[::1]/map.json", None),
            ("http://localhost/map.json", None),
            (
                "http://prices.example/map.json",
                Some("it does not begin with `https://`, and `prices.example` is not this machine"),
            ),
            (
                "http://localhost.prices.example/",
                Some(
                    "it does not begin with `https://`, and `localhost.prices.example` is not this machine",
                ),
            ),
            (
                "ftp://127.0.0.1/map.json",
                Some("it does not begin with `https://`, and `127.0.0.1` is not this machine"),
            ),
            (
                "https://me:secret@prices.example/",
                Some("it contains a user name or password"),
            ),
            ("https://", Some("invalid URL: empty host")),
        ] {
            let error = parse_url(address).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "{address}");
        }
    }
}
