//! Checks each request before its handler: host, origin, credential, rights, CSRF header.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use ralph_core::parse_value;

use super::access_control::{AccessControl, SignInError};
use super::cookie::SessionCookie;
use super::header_text::header_text;
use super::scope::AccessScope;
use super::sessions::SessionEnd;
use super::web_origin::{AllowedOrigins, WebScheme};
use crate::problem::Problem;

/// The header that a browser sends with each request that changes something. A foreign page cannot add
/// a header without asking first, and the answer is always no.
const CSRF_HEADER: HeaderName = HeaderName::from_static("x-ralph-csrf");

/// The ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionInfo {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) scheme: WebScheme,
}

/// The sender of an accepted request; handlers get it as an extension.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) scope: AccessScope,
    /// Streams end with the session; a program with the token has none.
    pub(crate) session: Option<SessionEnd>,
    /// The end of the session at the latest.
    pub(crate) expires: Option<Timestamp>,
}

/// Decides whether a request is accepted.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    pub(crate) access: Arc<AccessControl>,
    pub(crate) cookie: SessionCookie,
    pub(crate) origins: AllowedOrigins,
    /// Browsers reach the server by a name, and with HTTPS.
    pub(crate) has_https_name: bool,
    /// A proxy adds `X-Forwarded-For`.
    pub(crate) is_behind_proxy: bool,
}

impl RequestGuard {
    /// Accepts a request, or returns the response. The caller of an accepted one becomes an extension.
    pub(crate) fn check(&self, parts: &mut Parts) -> Result<(), Problem> {
        let origins = match parts.extensions.get::<ConnectionInfo>() {
            Some(ends) => self.origins.with_local(ends.local, ends.scheme),
            None => self.origins.clone(),
        };
        check_host(&origins, parts)?;
        check_origin(&origins, parts)?;
        if is_open(parts) {
            return Ok(());
        }
        let caller = self.caller(parts)?;
        if caller.scope == AccessScope::Read && !is_safe(&parts.method) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "read-only",
                "a share link may not change anything",
            ));
        }
        parts.extensions.insert(caller);
        Ok(())
    }

    fn caller(&self, parts: &Parts) -> Result<Caller, Problem> {
        let client = client_address(parts, self.is_behind_proxy);
        if let Some(authorization) = parts.headers.get(header::AUTHORIZATION) {
            let token = bearer(authorization).unwrap_or_default();
            return match self.access.check_token(token, client) {
                Ok(()) => Ok(Caller {
                    scope: AccessScope::Full,
                    session: None,
                    expires: None,
                }),
                Err(error) => Err(error.into()),
            };
        }
        let mut cookies = self.cookie.values(&parts.headers);
        let Some(session) = cookies.find_map(|cookie| self.access.session(cookie)) else {
            return Err(not_signed_in());
        };
        check_browser(parts)?;
        Ok(Caller {
            scope: session.scope,
            session: Some(session.end),
            expires: Some(session.expires),
        })
    }
}

/// Returns whether a request needs no credential. The page that signs in does not contain anything.
fn is_open(parts: &Parts) -> bool {
    match parts.uri.path() {
        "/health" => is_safe(&parts.method),
        "/login" => true,
        _ => false,
    }
}

/// Returns the address of the client: of the connection, or the last one that the proxy added.
pub(crate) fn client_address(parts: &Parts, is_behind_proxy: bool) -> IpAddr {
    let unknown = IpAddr::from([0, 0, 0, 0]);
    let peer = parts.extensions.get::<ConnectionInfo>();
    let peer = peer.map_or(unknown, |ends| ends.peer.ip());
    if !is_behind_proxy {
        return peer;
    }
    let forwarded = parts.headers.get_all("x-forwarded-for").iter().next_back();
    let forwarded = forwarded.and_then(header_text);
    let last = forwarded.and_then(|list| list.rsplit(',').next());
    let last = last.and_then(|address| parse_value(address.trim()));
    last.unwrap_or(peer)
}

/// A page of a foreign name that resolves to this machine must not reach the server.
fn check_host(origins: &AllowedOrigins, parts: &Parts) -> Result<(), Problem> {
    let named = only_value(&parts.headers, &header::HOST);
    let in_uri = parts.uri.authority();
    let is_own = named.is_some_and(|host| origins.has_host(host))
        && in_uri.is_none_or(|authority| origins.has_host(authority.as_str()));
    if is_own {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        "foreign-host",
        "the `Host` header does not name this server",
    )
    .with_hint("use the address that `ralph serve` printed, or start it with `--public-url`"))
}

/// Browsers send `Origin` with everything that could change something, and with each `WebSocket`.
fn check_origin(origins: &AllowedOrigins, parts: &Parts) -> Result<(), Problem> {
    if !parts.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = only_value(&parts.headers, &header::ORIGIN);
    let is_own = origin.is_some_and(|origin| origins.has_origin(origin));
    if is_own || is_sign_in_form(parts, origin) {
        return Ok(());
    }
    Err(foreign_origin())
}

/// Returns whether a request is the form of the page that signs in. With `Referrer-Policy: no-referrer`
/// a form has the origin `null`; no page can change `Sec-Fetch-Site`.
fn is_sign_in_form(parts: &Parts, origin: Option<&str>) -> bool {
    parts.method == Method::POST
        && parts.uri.path() == "/login"
        && origin == Some("null")
        && parts
            .headers
            .get("sec-fetch-site")
            .map(HeaderValue::as_bytes)
            == Some(b"same-origin")
}

/// Checks a request with a cookie: a browser adds the cookie to requests of other pages of the same
/// site, such as another port of this machine.
fn check_browser(parts: &Parts) -> Result<(), Problem> {
    let header = |name: &str| parts.headers.get(name).map(HeaderValue::as_bytes);
    let is_own_page = matches!(
        header("sec-fetch-site"),
        None | Some(b"same-origin" | b"none")
    );
    let is_navigation =
        header("sec-fetch-mode") == Some(b"navigate") && parts.method == Method::GET;
    if !is_own_page && !is_navigation {
        return Err(foreign_origin());
    }
    if parts.headers.contains_key(header::UPGRADE) && !parts.headers.contains_key(header::ORIGIN) {
        return Err(foreign_origin());
    }
    if !is_safe(&parts.method) && header("x-ralph-csrf").is_none_or(<[u8]>::is_empty) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "missing-csrf-header",
            format!(
                "a request with a cookie that changes something needs the header `{CSRF_HEADER}`"
            ),
        )
        .with_hint("send the header with any value, or use the token of programs"));
    }
    Ok(())
}

fn foreign_origin() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "foreign-origin",
        "the request comes from a page of another origin",
    )
}

fn not_signed_in() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "not-signed-in",
        "the request has no valid token or session",
    )
    .with_hint("sign in with the link of `ralph serve --login`, or send the token of server.json")
}

impl From<SignInError> for Problem {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Invalid => not_signed_in(),
            SignInError::TooMany { retry_after } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-failures",
                "too many attempts to sign in failed",
            )
            .with_retry_after(retry_after),
        }
    }
}

/// Returns whether a method changes nothing.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Returns the token of an `Authorization` header.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let text = header_text(value)?;
    let (scheme, token) = text.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start())
}

/// Returns the value of a header that occurs once.
fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    header_text(value)
}
