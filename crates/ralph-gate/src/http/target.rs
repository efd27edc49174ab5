//! Who a request is for.

use hyper::header::HOST;
use hyper::{HeaderMap, Request, Uri};
use ralph_core::net::{Endpoint, Reason};

use super::refusal::Refusal;

/// Returns the one `Host` header.
fn host_header(headers: &HeaderMap, default_port: u16) -> Result<Option<Endpoint>, Refusal> {
    let mut values = headers.get_all(HOST).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Refusal::bad(Reason::Malformed, "more than one Host"));
    }
    let text = value
        .to_str()
        .map_err(|_| Refusal::bad(Reason::Malformed, "Host is not text"))?;
    parse(text, default_port).map(Some)
}

fn parse(text: &str, default_port: u16) -> Result<Endpoint, Refusal> {
    Endpoint::parse(text, default_port)
        .map_err(|error| Refusal::bad(Reason::Malformed, &format!("host `{text}` {error}")))
}

/// Returns who a request to the proxy is for: `GET http://host/path`.
pub(super) fn of_proxy<B>(request: &Request<B>) -> Result<Endpoint, Refusal> {
    let uri = request.uri();
    match uri.scheme_str() {
        Some("http") => {}
        Some(_) => {
            let text = "only http:// goes through the proxy as it is, anything else by CONNECT";
            return Err(Refusal::bad(Reason::UnsupportedProtocol, text));
        }
        None => {
            let text = "this is a proxy: it wants a whole address";
            return Err(Refusal::bad(Reason::Malformed, text));
        }
    }
    let target = authority(uri, 80)?;
    match host_header(request.headers(), 80)? {
        Some(named) if named != target => Err(mismatch(&named, &target)),
        Some(_) | None => Ok(target),
    }
}

/// Returns the authority of an address; it has neither user nor password.
pub(super) fn authority(uri: &Uri, default_port: u16) -> Result<Endpoint, Refusal> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        let text = "the address has a user: no credential but the gate's own leaves the sandbox";
        return Err(Refusal::bad(Reason::ForeignCredential, text));
    }
    parse(authority, default_port)
}

/// Returns who a request is for that arrived at the host itself: what `Host` says, if that is who was
/// expected.
pub(super) fn of_origin<B>(
    request: &Request<B>,
    expected: Option<&Endpoint>,
    default_port: u16,
) -> Result<Endpoint, Refusal> {
    let Some(named) = host_header(request.headers(), default_port)? else {
        return Err(Refusal::bad(Reason::NoServerName, "there is no Host"));
    };
    if let Some(expected) = expected
        && named != *expected
    {
        return Err(mismatch(&named, expected));
    }
    if request.uri().authority().is_some() {
        let target = authority(request.uri(), default_port)?;
        if named != target {
            return Err(mismatch(&named, &target));
        }
    }
    Ok(named)
}

fn mismatch(named: &Endpoint, target: &Endpoint) -> Refusal {
    let text = format!("Host says `{named}`, the connection is for `{target}`");
    Refusal {
        status: hyper::StatusCode::FORBIDDEN,
        ..Refusal::bad(Reason::NameMismatch, &text)
    }
}
