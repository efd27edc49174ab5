//! Forwards requests and streams their responses back.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri};
use ralph_core::net::{EgressReason, Endpoint};

use super::body::{CountedResponseBody, GateBody, counted_request_body};
use super::foreign_credential::{find_foreign_credential, strip_cookies};
use super::{HttpRefusal, find_dial_error, strip_hop_by_hop};
use crate::SandboxListener;
use crate::gate::GateInner;

/// Forwards a request, if the rules allow its endpoint and it carries no credential of its own.
pub(super) async fn forward(
    gate: &GateInner,
    listener: SandboxListener,
    scheme: Scheme,
    endpoint: Endpoint,
    mut request: Request<Incoming>,
) -> Result<Response<GateBody>, HttpRefusal> {
    let decision = gate.decide(&endpoint);
    let mut record = gate.open_record(listener, &endpoint, decision);
    record.set_request(request.method().as_str(), request.uri().path());
    if !decision.is_allowed() {
        record.set_status(403);
        return Err(HttpRefusal::blocked(
            gate.audit_log.run(),
            &endpoint,
            decision,
        ));
    }
    let (method, uri) = (request.method(), request.uri());
    if let Some(part) = find_foreign_credential(method, uri, request.headers()) {
        let refusal = HttpRefusal::foreign_credential(&endpoint, &part);
        record.set_decision(refusal.decision);
        record.set_status(refusal.status.as_u16());
        record.set_detail(&part);
        return Err(refusal);
    }
    strip_hop_by_hop(request.headers_mut());
    rewrite_target(&mut request, scheme, &endpoint)?;
    let traffic = record.traffic();
    let counted = traffic.clone();
    let request = request.map(|body| counted_request_body(body, counted));
    let mut response = match gate.client.request(request).await {
        Ok(response) => response,
        Err(error) => {
            let refusal = upstream_refusal(&error);
            record.set_decision(refusal.decision);
            record.set_status(refusal.status.as_u16());
            return Err(refusal);
        }
    };
    record.set_status(response.status().as_u16());
    strip_hop_by_hop(response.headers_mut());
    strip_cookies(response.headers_mut());
    Ok(response.map(|inner| {
        CountedResponseBody {
            inner,
            traffic,
            record: Some(record),
        }
        .boxed_unsync()
    }))
}

/// Returns the refusal for a request without a response.
pub(crate) fn upstream_refusal(error: &(dyn std::error::Error + 'static)) -> HttpRefusal {
    match find_dial_error(error) {
        Some(error) => HttpRefusal::from_dial_error(error),
        None => HttpRefusal {
            status: hyper::StatusCode::BAD_GATEWAY,
            ..HttpRefusal::bad_request(
                EgressReason::Unreachable,
                "the host sent no valid HTTP response",
            )
        },
    }
}

/// Writes the normalized endpoint into the URI and the `Host` header of a request.
fn rewrite_target(
    request: &mut Request<Incoming>,
    scheme: Scheme,
    endpoint: &Endpoint,
) -> Result<(), HttpRefusal> {
    let malformed =
        || HttpRefusal::bad_request(EgressReason::Malformed, "the target address is invalid");
    let is_default = endpoint.port == if scheme == Scheme::HTTPS { 443 } else { 80 };
    let text = if is_default {
        endpoint.host.to_string()
    } else {
        endpoint.to_string()
    };
    let host = HeaderValue::try_from(&text).map_err(|_| malformed())?;
    request.headers_mut().insert(HOST, host);
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(scheme);
    parts.authority = Some(Authority::try_from(text).map_err(|_| malformed())?);
    if parts.path_and_query.is_none() {
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
    }
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| malformed())?;
    Ok(())
}
