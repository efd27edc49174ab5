//! Determines the endpoint that a request is for.

use hyper::header::HOST;
use hyper::{HeaderMap, Request, Uri};
use ralph_core::net::{EgressReason, Endpoint};

use super::refusal::HttpRefusal;

/// Returns the endpoint of the `Host` header, if there is one. A second header is refused.
fn host_header(headers: &HeaderMap, default_port: u16) -> Result<Option<Endpoint>, HttpRefusal> {
    let mut values = headers.get_all(HOST).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(HttpRefusal::bad_request(
            EgressReason::Malformed,
            "more than one `Host` header",
        ));
    }
    let text = value.to_str().map_err(|_| {
        HttpRefusal::bad_request(EgressReason::Malformed, "the `Host` header is not text")
    })?;
    parse_endpoint(text, default_port).map(Some)
}

fn parse_endpoint(text: &str, default_port: u16) -> Result<Endpoint, HttpRefusal> {
    Endpoint::parse(text, default_port).map_err(|error| {
        HttpRefusal::bad_request(EgressReason::Malformed, &format!("host `{text}` {error}"))
    })
}

/// Returns the endpoint of a proxy request: `GET http://host/path`.
pub(super) fn proxy_target<B>(request: &Request<B>) -> Result<Endpoint, HttpRefusal> {
    let uri = request.uri();
    match uri.scheme_str() {
        Some("http") => {}
        Some(_) => {
            let text =
                "the proxy only forwards `http://` requests; use `CONNECT` for anything else";
            return Err(HttpRefusal::bad_request(
                EgressReason::UnsupportedProtocol,
                text,
            ));
        }
        None => {
            let text = "the proxy needs an absolute URL";
            return Err(HttpRefusal::bad_request(EgressReason::Malformed, text));
        }
    }
    let target = uri_endpoint(uri, 80)?;
    match host_header(request.headers(), 80)? {
        Some(named) if named != target => Err(mismatch(&named, &target)),
        Some(_) | None => Ok(target),
    }
}

/// Returns the endpoint of a URI, which must not contain user information.
pub(super) fn uri_endpoint(uri: &Uri, default_port: u16) -> Result<Endpoint, HttpRefusal> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        let text = "the URL contains user information; only the gate may add credentials";
        return Err(HttpRefusal::bad_request(
            EgressReason::ForeignCredential,
            text,
        ));
    }
    parse_endpoint(authority, default_port)
}

/// Returns the endpoint of a request in origin form: the `Host` header, if it matches the expected
/// endpoint.
pub(super) fn origin_target<B>(
    request: &Request<B>,
    expected: Option<&Endpoint>,
    default_port: u16,
) -> Result<Endpoint, HttpRefusal> {
    let Some(named) = host_header(request.headers(), default_port)? else {
        return Err(HttpRefusal::bad_request(
            EgressReason::NoServerName,
            "the `Host` header is missing",
        ));
    };
    if let Some(expected) = expected
        && named != *expected
    {
        return Err(mismatch(&named, expected));
    }
    if request.uri().authority().is_some() {
        let target = uri_endpoint(request.uri(), default_port)?;
        if named != target {
            return Err(mismatch(&named, &target));
        }
    }
    Ok(named)
}

fn mismatch(named: &Endpoint, target: &Endpoint) -> HttpRefusal {
    let text = format!("the `Host` header names `{named}`, but the connection is for `{target}`");
    HttpRefusal {
        status: hyper::StatusCode::FORBIDDEN,
        ..HttpRefusal::bad_request(EgressReason::NameMismatch, &text)
    }
}
