//! Responses of the API, and the parts of their heads that ralph reads.

use hyper::StatusCode;
use hyper::header::{HeaderMap, LINK, LOCATION};
use jiff::Timestamp;
use ralph_core::ports::HostErrorKind;
use ralph_guest::available;
use serde::de::DeserializeOwned;
use url::Url;

use super::error::kind_of_http;
use crate::http::StreamedResponse;

/// The size limit of a response body, in bytes.
const MAX_BODY_BYTES: usize = 8 << 20;

/// The primary rate limit of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per hour.
    pub limit: u64,
    pub remaining: u64,
    /// The start of the next hour.
    pub reset: Timestamp,
}

/// A successful response.
#[derive(Debug)]
pub struct GitHubReply<T> {
    pub value: T,
    /// The scopes of a classic token; `None` for other credentials.
    pub scopes: Option<Vec<String>>,
    /// The rate limit; `None` if the server has none.
    pub rate_limit: Option<RateLimit>,
    /// The expiry of a token, as GitHub formats it.
    pub token_expiry: Option<String>,
    /// The next page of a list.
    pub(super) next_page: Option<Url>,
}

/// A response that was read completely.
#[derive(Debug, Clone)]
pub(super) struct ReadResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl ReadResponse {
    /// Reads a response of limited size.
    pub(super) async fn read(mut response: StreamedResponse) -> Result<Self, HostErrorKind> {
        let mut body = Vec::new();
        let chunk_error = |error| kind_of_http(&error);
        while let Some(chunk) = response.chunk().await.map_err(chunk_error)? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                let why = format!("the response has more than {MAX_BODY_BYTES} bytes");
                return Err(HostErrorKind::Unexpected { why });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Self {
            status: response.status(),
            headers: response.headers().clone(),
            body,
        })
    }

    /// Parses a successful response to a request for `url`.
    pub(super) fn parse<T: DeserializeOwned>(
        &self,
        url: &Url,
    ) -> Result<GitHubReply<T>, HostErrorKind> {
        let headers = &self.headers;
        let value = serde_json::from_slice(&self.body).map_err(|error| {
            let why = format!("the response is not the documented JSON: {error}");
            HostErrorKind::Unexpected { why }
        })?;
        Ok(GitHubReply {
            value,
            scopes: scopes(headers),
            rate_limit: rate_limit(headers),
            token_expiry: header(headers, "github-authentication-token-expiration")
                .map(str::to_owned),
            next_page: next_page(headers, url),
        })
    }

    /// Returns the target of a redirect.
    pub(super) fn redirect(&self, url: &Url) -> Option<Url> {
        let is_redirect = matches!(self.status.as_u16(), 301 | 302 | 307 | 308);
        let location = header(&self.headers, LOCATION.as_str()).filter(|_| is_redirect)?;
        available(url.join(location))
    }
}

/// Returns the text of a header.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    available(headers.get(name)?.to_str())
}

/// Returns the scopes of a classic token. A header without any scope is a token without any.
fn scopes(headers: &HeaderMap) -> Option<Vec<String>> {
    let list = header(headers, "x-oauth-scopes")?.split(',').map(str::trim);
    let list = list.filter(|scope| !scope.is_empty());
    Some(list.map(str::to_owned).collect())
}

fn rate_limit(headers: &HeaderMap) -> Option<RateLimit> {
    let number = |name| ralph_core::parse_value::<u64>(header(headers, name)?);
    let reset = ralph_core::parse_value(header(headers, "x-ratelimit-reset")?)?;
    Some(RateLimit {
        limit: number("x-ratelimit-limit")?,
        remaining: number("x-ratelimit-remaining")?,
        reset: available(Timestamp::from_second(reset))?,
    })
}

/// Returns the next page of a list: `Link: <…>; rel="next"`. A server behind another name links to its own
/// name; the page is requested from the API's address all the same.
fn next_page(headers: &HeaderMap, url: &Url) -> Option<Url> {
    let links = header(headers, LINK.as_str())?.split(',');
    let mut next = links.filter(|link| link.contains("rel=\"next\""));
    let link = next.next()?.trim();
    let target = link.strip_prefix('<')?.split('>').next()?;
    let target = available(Url::parse(target))?;
    let mut next = url.clone();
    next.set_path(target.path());
    next.set_query(target.query());
    Some(next)
}
