//! Sends requests to the API: headers, limits, repetitions and redirects.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_NONE_MATCH, RETRY_AFTER,
};
use hyper::{Method, Request};
use jiff::Timestamp;
use ralph_core::ports::{Clock, HostError, HostErrorKind};
use ralph_core::secret::Secret;
use ralph_guest::available;
use serde_json::Value;
use url::Url;

use super::error::{kind_of_http, kind_of_response, retry_after, sent_at};
use super::etag::ResponseCache;
use super::pace::{GitHubTiming, TokenPace};
use super::response::{ReadResponse, header};
use crate::http::{HttpClient, HttpError, ProxyAddressError, ProxySettings};

/// The version of the API.
const API_VERSION: &str = "2022-11-28";

/// The time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The most redirects of a request: a repository can be renamed several times.
const MAX_REDIRECTS: usize = 3;

/// The most attempts of a request that may be repeated.
const MAX_ATTEMPTS: u32 = 3;

/// The size limit of a log, in bytes; only its end is kept.
const MAX_LOG_BYTES: usize = 64 << 20;

/// The difference between the clocks, in seconds, up to which a rejected signature has another
/// cause.
const TOLERATED_SKEW_SECONDS: i64 = 60;

/// A request to the API.
#[derive(Debug, Clone)]
pub(super) struct ApiRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Value>,
    pub(super) effect: RequestEffect,
}

/// The effect of a request, which decides whether it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestEffect {
    /// It reads. It is repeated after a failure of the network or the server.
    Read,
    /// Like `Read`; the response is never a remembered one. For lists that decide whether something is created: a
    /// page may be unchanged although another one follows it now.
    ReadFresh,
    /// Like `Read`; a redirect to another server is the response, and nothing is remembered.
    ReadRedirect,
    /// It changes something. It is never repeated after it may have been sent.
    Change,
    /// It creates a token, which is no change of a repository.
    CreateToken,
}

impl RequestEffect {
    fn is_repeatable(self) -> bool {
        match self {
            Self::Read | Self::ReadFresh | Self::ReadRedirect => true,
            Self::Change | Self::CreateToken => false,
        }
    }
}

impl ApiRequest {
    pub(super) fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            body: None,
            effect: RequestEffect::Read,
        }
    }

    pub(super) fn change(method: Method, url: Url, body: Option<Value>) -> Self {
        Self {
            method,
            url,
            body,
            effect: RequestEffect::Change,
        }
    }

    fn is_cacheable(&self) -> bool {
        self.method == Method::GET && self.effect == RequestEffect::Read
    }
}

/// A connection to the API of one server.
pub(super) struct Transport {
    base: Url,
    http: HttpClient,
    clock: Arc<dyn Clock>,
    timing: GitHubTiming,
    pace: TokenPace,
    /// The end of an exceeded limit, also after the token was replaced. No request is sent before.
    limited_until: Mutex<Option<Timestamp>>,
    cache: Mutex<ResponseCache>,
}

/// A failed exchange.
struct FailedExchange {
    kind: HostErrorKind,
    /// Whether the server may have received the request.
    may_be_sent: bool,
}

impl Transport {
    /// Creates a connection to the API at `base`, whose path ends without a slash.
    pub(super) fn new(
        base: Url,
        network: &ProxySettings,
        clock: Arc<dyn Clock>,
        timing: GitHubTiming,
        pace: TokenPace,
    ) -> Result<Self, ProxyAddressError> {
        Ok(Self {
            base,
            http: HttpClient::new(network, CONNECT_TIMEOUT)?,
            clock,
            timing,
            pace,
            limited_until: Mutex::new(None),
            cache: Mutex::default(),
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

    /// Returns the address of GraphQL: beside the API of a GitHub Enterprise Server, below that of github.com.
    pub(super) fn graphql_url(&self) -> Url {
        let mut url = self.url(&["graphql"]);
        if let Some(root) = url.path().strip_suffix("/v3/graphql") {
            let path = format!("{root}/graphql");
            url.set_path(&path);
        }
        url
    }

    /// Forgets the responses that another credential has received.
    pub(super) fn forget(&self) {
        let cache = self.cache.lock();
        cache.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Sends a request, follows redirects to the same server, and returns a successful response.
    pub(super) async fn send(
        &self,
        request: &ApiRequest,
        credential: &Secret,
    ) -> Result<ReadResponse, HostError> {
        let mut request = request.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.repeat(&request, credential).await?;
            let Some(location) = response.redirect(&request.url) else {
                return self.check(&request, credential, response);
            };
            if request.effect == RequestEffect::ReadRedirect && response.status == 302 {
                return Ok(response);
            }
            if location.origin() != request.url.origin() {
                let why = "redirected to another server".to_owned();
                let kind = HostErrorKind::Unexpected { why };
                return Err(self.error(&request, Some(&response), kind));
            }
            // A change was not performed: the server redirects before it does anything.
            request.url = location;
        }
        let why = "too many redirects".to_owned();
        Err(self.error(&request, None, HostErrorKind::Unexpected { why }))
    }

    /// Sends a request, and repeats it after a transient failure if that is safe.
    async fn repeat(
        &self,
        request: &ApiRequest,
        credential: &Secret,
    ) -> Result<ReadResponse, HostError> {
        let mut attempt = 0;
        loop {
            let result = self.exchange(request, credential).await;
            let is_last = attempt + 1 == MAX_ATTEMPTS;
            match result {
                Ok(response) if response.status.is_server_error() => {
                    // The server knows when it is available again.
                    let has_wait = header(&response.headers, RETRY_AFTER.as_str()).is_some();
                    if is_last || has_wait || !request.effect.is_repeatable() {
                        return Ok(response);
                    }
                }
                Ok(response) => return Ok(response),
                Err(FailedExchange { kind, may_be_sent }) => {
                    let is_safe = request.effect.is_repeatable() || !may_be_sent;
                    let is_transient = matches!(kind, HostErrorKind::Unavailable { .. });
                    if is_last || !is_safe || !is_transient {
                        return Err(self.error(request, None, kind));
                    }
                }
            }
            // The clock spreads the clients well enough.
            let chance = self.clock.now().subsec_microsecond().unsigned_abs();
            let wait = self.timing.retry_wait(attempt, chance);
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn exchange(
        &self,
        request: &ApiRequest,
        credential: &Secret,
    ) -> Result<ReadResponse, FailedExchange> {
        if request.effect == RequestEffect::Change {
            let interval = self.timing.mutation_interval;
            let wait = self.pace.reserve(credential, Instant::now(), interval);
            tokio::time::sleep(wait).await;
        }
        let not_sent = |kind| FailedExchange {
            kind,
            may_be_sent: false,
        };
        if let Some(until) = self.limit_end(credential) {
            return Err(not_sent(HostErrorKind::RateLimited { until }));
        }
        let mut sent = build(request, credential).map_err(not_sent)?;
        let known = self.known(request);
        if let Some((tag, _)) = &known {
            sent.headers_mut().insert(IF_NONE_MATCH, tag.clone());
        }
        let exchange = async {
            let response = self.http.send(sent).await.map_err(|error| FailedExchange {
                may_be_sent: !matches!(error, HttpError::Connect(_)),
                kind: kind_of_http(&error),
            })?;
            let read = ReadResponse::read(response).await;
            read.map_err(|kind| FailedExchange {
                kind,
                may_be_sent: true,
            })
        };
        let response = tokio::time::timeout(self.timing.timeout, exchange).await;
        let timed_out = |_| FailedExchange {
            kind: HostErrorKind::Unavailable {
                cause: format!("no response within {} s", self.timing.timeout.as_secs()),
            },
            may_be_sent: true,
        };
        let response = response.map_err(timed_out).and_then(|response| response)?;
        Ok(match known {
            Some((_, mut unchanged)) if response.status == 304 => {
                // They may be newer, for example the link to the next page.
                unchanged.headers.extend(response.headers);
                unchanged
            }
            Some(_) | None => response,
        })
    }

    /// Returns the end of an exceeded limit, unless it is over.
    fn limit_end(&self, credential: &Secret) -> Option<Timestamp> {
        let limit = self.limited_until.lock();
        let own = *limit.unwrap_or_else(PoisonError::into_inner);
        let until = own.max(self.pace.limit_end(credential));
        until.filter(|until| *until > self.clock.now())
    }

    /// Returns the remembered response and its tag.
    fn known(&self, request: &ApiRequest) -> Option<(HeaderValue, ReadResponse)> {
        if !request.is_cacheable() {
            return None;
        }
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let (tag, response) = cache.find(request.url.as_str())?;
        Some((available(HeaderValue::from_str(tag))?, response.clone()))
    }

    /// Returns a successful response, and remembers it.
    fn check(
        &self,
        request: &ApiRequest,
        credential: &Secret,
        response: ReadResponse,
    ) -> Result<ReadResponse, HostError> {
        if response.status.is_success() {
            if request.is_cacheable() {
                let cache = self.cache.lock();
                let mut cache = cache.unwrap_or_else(PoisonError::into_inner);
                cache.insert(request.url.as_str(), &response);
            }
            return Ok(response);
        }
        let ReadResponse {
            status,
            headers,
            body,
        } = &response;
        let now = self.clock.now();
        let kind = kind_of_response(*status, headers, body, now);
        let limit = if let HostErrorKind::RateLimited { until } = kind {
            Some(until)
        } else {
            retry_after(headers, now)
        };
        if let Some(until) = limit {
            self.set_limit(credential, until);
        }
        Err(self.error(request, Some(&response), kind))
    }

    /// Sends no request before a time: neither this client, nor another one with this credential.
    pub(super) fn set_limit(&self, credential: &Secret, until: Timestamp) {
        self.pace.set_limit(credential, until);
        let limit = self.limited_until.lock();
        let mut limit = limit.unwrap_or_else(PoisonError::into_inner);
        // A response that was sent earlier may name an earlier end.
        *limit = limit.max(Some(until));
    }

    /// Adds the request to an error. A rejected credential may be caused by a wrong clock.
    pub(super) fn error(
        &self,
        request: &ApiRequest,
        response: Option<&ReadResponse>,
        kind: HostErrorKind,
    ) -> HostError {
        let path = request.url.path();
        let path = path.strip_prefix(self.base.path().trim_end_matches('/'));
        let headers = response.map(|response| &response.headers);
        let kind = match (kind, headers.and_then(|headers| self.skew(headers))) {
            (HostErrorKind::Unauthorized { .. }, Some(skew))
                if skew.abs() > TOLERATED_SKEW_SECONDS =>
            {
                HostErrorKind::WrongClock {
                    seconds: skew.unsigned_abs(),
                    is_ahead: skew > 0,
                }
            }
            (kind, _) => kind,
        };
        HostError {
            request: format!(
                "{} {}",
                request.method,
                path.unwrap_or_else(|| request.url.path())
            ),
            request_id: headers
                .and_then(|headers| header(headers, "x-github-request-id"))
                .map(Box::from),
            kind,
        }
    }

    /// Returns by how many seconds this machine's clock is ahead of the server's.
    fn skew(&self, headers: &HeaderMap) -> Option<i64> {
        Some(self.clock.now().as_second() - sent_at(headers)?.as_second())
    }

    /// Returns the end of a file on another server, which gets no credential.
    pub(super) async fn download_end(
        &self,
        url: &Url,
        max_bytes: usize,
    ) -> Result<Vec<u8>, HostErrorKind> {
        if url.scheme() != "https" && url.scheme() != self.base.scheme() {
            let why = "the log has no `https` address".to_owned();
            return Err(HostErrorKind::Unexpected { why });
        }
        let request = Request::get(url.as_str()).body(Full::default());
        let request = request.map_err(|error| HostErrorKind::Unexpected {
            why: error.to_string(),
        })?;
        let download = async {
            let unavailable = |error: HttpError| kind_of_http(&error);
            let mut response = self.http.send(request).await.map_err(unavailable)?;
            if !response.status().is_success() {
                let cause = format!("status {} of the log", response.status().as_u16());
                return Err(HostErrorKind::Unavailable { cause });
            }
            let (mut end, mut total) = (Vec::new(), 0);
            while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
                total += chunk.len();
                end.extend_from_slice(&chunk);
                if end.len() > 2 * max_bytes {
                    end.drain(..end.len() - max_bytes);
                }
                if total > MAX_LOG_BYTES {
                    break;
                }
            }
            end.drain(..end.len().saturating_sub(max_bytes));
            Ok(end)
        };
        let timeout = tokio::time::timeout(self.timing.timeout, download).await;
        timeout.unwrap_or_else(|_| {
            let cause = "the log did not arrive in time".to_owned();
            Err(HostErrorKind::Unavailable { cause })
        })
    }
}

fn build(request: &ApiRequest, credential: &Secret) -> Result<Request<Full<Bytes>>, HostErrorKind> {
    let invalid = |_| HostErrorKind::Unexpected {
        why: "the credential has characters that cannot be sent".to_owned(),
    };
    let mut bearer =
        HeaderValue::from_str(&format!("Bearer {}", credential.expose())).map_err(invalid)?;
    bearer.set_sensitive(true);
    let builder = Request::builder()
        .method(&request.method)
        .uri(request.url.as_str())
        .header(ACCEPT, "application/vnd.github+json")
        .header("x-github-api-version", API_VERSION)
        .header(AUTHORIZATION, bearer);
    let built = match &request.body {
        Some(body) => builder
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string())),
        None => builder.body(Full::default()),
    };
    built.map_err(|error| HostErrorKind::Unexpected {
        why: error.to_string(),
    })
}
