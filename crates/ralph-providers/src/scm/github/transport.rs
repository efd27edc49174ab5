//! Sends requests to the API: headers, limits, redirects and pages.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, DATE, HeaderMap, HeaderValue, LINK, LOCATION};
use hyper::{Method, Request, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use ralph_core::ports::Clock;
use ralph_core::secret::Secret;
use ralph_guest::available;
use serde::de::DeserializeOwned;
use url::Url;

use super::error::{GitHubError, GitHubErrorKind};
use crate::http::{HttpClient, ProxyAddressError, ProxySettings, StreamedResponse};

/// The version of the API.
const API_VERSION: &str = "2022-11-28";

/// The time limit of a connection and of a whole exchange.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_mins(1);

/// The size limit of a response body, in bytes.
const MAX_BODY_BYTES: usize = 8 << 20;

/// The most redirects of a request: a repository can be renamed several times.
const MAX_REDIRECTS: usize = 3;

/// The most pages of a list, each of 100 entries.
const MAX_PAGES: usize = 10;

/// The difference between the clocks, in seconds, up to which a rejected signature has another
/// cause.
const TOLERATED_SKEW_SECONDS: i64 = 60;

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
    next_page: Option<Url>,
}

/// A connection to the API of one server.
pub(super) struct Transport {
    base: Url,
    http: HttpClient,
    clock: Arc<dyn Clock>,
    /// The end of an exceeded limit. No request is sent before.
    limited_until: Mutex<Option<Timestamp>>,
}

/// A response that was read completely.
struct RawResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Transport {
    /// Creates a connection to the API at `base`, whose path ends without a slash.
    pub(super) fn new(
        base: Url,
        network: &ProxySettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ProxyAddressError> {
        Ok(Self {
            base,
            http: HttpClient::new(network, CONNECT_TIMEOUT)?,
            clock,
            limited_until: Mutex::new(None),
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the URL of a path below the API's address. Parts may contain any characters.
    pub(super) fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        // An `https` URL always has a path.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Sends a GET request and follows redirects to the same server.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        url: Url,
        credential: &Secret,
    ) -> Result<GitHubReply<T>, GitHubError> {
        let mut target = url;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(&Method::GET, &target, credential).await?;
            let Some(location) = redirect(&response, &target) else {
                return self.parse(&Method::GET, &target, &response);
            };
            if location.origin() != target.origin() {
                let kind = GitHubErrorKind::ForeignRedirect;
                return Err(self.error(&Method::GET, &target, Some(&response), kind));
            }
            target = location;
        }
        let why = "too many redirects".to_owned();
        let kind = GitHubErrorKind::Unexpected { why };
        Err(self.error(&Method::GET, &target, None, kind))
    }

    /// Returns all entries of a list, page by page.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        mut url: Url,
        credential: &Secret,
    ) -> Result<Vec<T>, GitHubError> {
        url.query_pairs_mut().append_pair("per_page", "100");
        let mut entries = Vec::new();
        let mut next = Some(url);
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else {
                break;
            };
            let page: GitHubReply<Vec<T>> = self.get(url, credential).await?;
            entries.extend(page.value);
            next = page.next_page;
        }
        Ok(entries)
    }

    /// Sends a POST request without a body. It is never repeated.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        url: &Url,
        credential: &Secret,
    ) -> Result<GitHubReply<T>, GitHubError> {
        let response = self.exchange(&Method::POST, url, credential).await?;
        self.parse(&Method::POST, url, &response)
    }

    async fn exchange(
        &self,
        method: &Method,
        url: &Url,
        credential: &Secret,
    ) -> Result<RawResponse, GitHubError> {
        let failed = |kind| self.error(method, url, None, kind);
        if let Some(until) = self.limit_end() {
            return Err(failed(GitHubErrorKind::RateLimited { until }));
        }
        let request = request(method, url, credential).map_err(&failed)?;
        let exchange = async {
            let response = self.http.send(request).await;
            let response = response.map_err(|error| GitHubErrorKind::from_http(&error))?;
            read_response(response).await
        };
        let response = tokio::time::timeout(TIMEOUT, exchange).await;
        let timed_out = |_| GitHubErrorKind::Unavailable {
            cause: format!("no response within {} s", TIMEOUT.as_secs()),
        };
        let response = response.map_err(timed_out).and_then(|response| response);
        response.map_err(failed)
    }

    /// Returns the end of an exceeded limit, unless it is over.
    fn limit_end(&self) -> Option<Timestamp> {
        let limit = self.limited_until.lock();
        let until = *limit.unwrap_or_else(PoisonError::into_inner);
        until.filter(|until| *until > self.clock.now())
    }

    fn parse<T: DeserializeOwned>(
        &self,
        method: &Method,
        url: &Url,
        response: &RawResponse,
    ) -> Result<GitHubReply<T>, GitHubError> {
        let RawResponse {
            status,
            headers,
            body,
        } = response;
        if !status.is_success() {
            let kind = GitHubErrorKind::from_response(*status, headers, body, self.clock.now());
            if let GitHubErrorKind::RateLimited { until } = kind {
                let limit = self.limited_until.lock();
                *limit.unwrap_or_else(PoisonError::into_inner) = Some(until);
            }
            return Err(self.error(method, url, Some(response), kind));
        }
        match serde_json::from_slice(body) {
            Ok(value) => Ok(GitHubReply {
                value,
                scopes: scopes(headers),
                rate_limit: rate_limit(headers),
                token_expiry: header(headers, "github-authentication-token-expiration")
                    .map(str::to_owned),
                next_page: next_page(headers, url),
            }),
            Err(error) => {
                let why = format!("the response is not the documented JSON: {error}");
                let kind = GitHubErrorKind::Unexpected { why };
                Err(self.error(method, url, Some(response), kind))
            }
        }
    }

    /// Adds the request to an error. A rejected credential may be caused by a wrong clock.
    fn error(
        &self,
        method: &Method,
        url: &Url,
        response: Option<&RawResponse>,
        kind: GitHubErrorKind,
    ) -> GitHubError {
        let path = url.path();
        let path = path.strip_prefix(self.base.path().trim_end_matches('/'));
        let headers = response.map(|response| &response.headers);
        let kind = match (kind, headers.and_then(|headers| self.skew(headers))) {
            (GitHubErrorKind::Unauthorized { .. }, Some(skew))
                if skew.abs() > TOLERATED_SKEW_SECONDS =>
            {
                GitHubErrorKind::WrongClock {
                    seconds: skew.unsigned_abs(),
                    is_ahead: skew > 0,
                }
            }
            (kind, _) => kind,
        };
        GitHubError {
            request: format!("{method} {}", path.unwrap_or(url.path())),
            request_id: headers
                .and_then(|headers| header(headers, "x-github-request-id"))
                .map(str::to_owned),
            kind,
        }
    }

    /// Returns by how many seconds this machine's clock is ahead of the server's.
    fn skew(&self, headers: &HeaderMap) -> Option<i64> {
        let date = header(headers, DATE.as_str())?;
        let date = available(DateTimeParser::new().parse_timestamp(date))?;
        Some(self.clock.now().as_second() - date.as_second())
    }
}

fn request(
    method: &Method,
    url: &Url,
    credential: &Secret,
) -> Result<Request<Full<Bytes>>, GitHubErrorKind> {
    let invalid = |_| GitHubErrorKind::Unexpected {
        why: "the credential has characters that cannot be sent".to_owned(),
    };
    let mut bearer =
        HeaderValue::from_str(&format!("Bearer {}", credential.expose())).map_err(invalid)?;
    bearer.set_sensitive(true);
    Request::builder()
        .method(method)
        .uri(url.as_str())
        .header(ACCEPT, "application/vnd.github+json")
        .header("x-github-api-version", API_VERSION)
        .header(AUTHORIZATION, bearer)
        .body(Full::default())
        .map_err(|error| GitHubErrorKind::Unexpected {
            why: error.to_string(),
        })
}

async fn read_response(mut response: StreamedResponse) -> Result<RawResponse, GitHubErrorKind> {
    let mut body = Vec::new();
    let chunk_error = |error| GitHubErrorKind::from_http(&error);
    while let Some(chunk) = response.chunk().await.map_err(chunk_error)? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            let why = format!("the response has more than {MAX_BODY_BYTES} bytes");
            return Err(GitHubErrorKind::Unexpected { why });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(RawResponse {
        status: response.status(),
        headers: response.headers().clone(),
        body,
    })
}

/// Returns the text of a header.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    available(headers.get(name)?.to_str())
}

fn redirect(response: &RawResponse, url: &Url) -> Option<Url> {
    let is_redirect = matches!(response.status.as_u16(), 301 | 302 | 307 | 308);
    let location = header(&response.headers, LOCATION.as_str()).filter(|_| is_redirect)?;
    available(url.join(location))
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

/// Returns the next page of a list: `Link: <…>; rel="next"`, on the same server.
fn next_page(headers: &HeaderMap, url: &Url) -> Option<Url> {
    let links = header(headers, LINK.as_str())?.split(',');
    let mut next = links.filter(|link| link.contains("rel=\"next\""));
    let link = next.next()?.trim();
    let target = link.strip_prefix('<')?.split('>').next()?;
    let target = available(Url::parse(target))?;
    (target.origin() == url.origin()).then_some(target)
}
