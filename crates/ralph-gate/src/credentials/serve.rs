//! Serves the credential port.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::{Method, Request, Response, StatusCode};
use ralph_core::net::{EgressDecider, EgressDecision, EgressReason};

use super::refusal::CredentialRefusal;
use super::route::{AllowedRequest, Route};
use super::send::send;
use super::{auth, path, telemetry};
use crate::gate::GateInner;
use crate::http::{self, GateBody, HandlerFuture, text_response};
use crate::{ByteStream, SandboxListener};

/// Serves one connection to the credential port.
pub(crate) async fn serve(gate: &Arc<GateInner>, stream: impl ByteStream + 'static) {
    let shared_gate = gate.clone();
    let handler = move |request: Request<Incoming>| -> HandlerFuture<'static> {
        let gate = shared_gate.clone();
        Box::pin(async move { handle_request(&gate, request).await })
    };
    http::serve_connection(gate, SandboxListener::Credentials, stream, handler).await;
}

async fn handle_request(gate: &Arc<GateInner>, request: Request<Incoming>) -> Response<GateBody> {
    if let Some(response) = answer_locally(gate, &request) {
        return response;
    }
    let request = match telemetry::receive(gate, request).await {
        Ok(response) => return response,
        Err(request) => request,
    };
    let uri = request.uri().clone();
    let path = uri.path();
    let found = gate.routes.find(path);
    let route = found.map(|(route, _)| route);
    let authorized = authorize(&request, found);
    let decision = match &authorized {
        Ok(_) => EgressDecision::allowed(EgressReason::CredentialRoute, EgressDecider::Credential),
        Err(refused) => refused.decision,
    };
    let mut record = match route {
        Some(route) => gate.audit_log.open(
            SandboxListener::Credentials,
            &route.upstream.endpoint,
            decision,
        ),
        None => gate
            .audit_log
            .open_unparsed(SandboxListener::Credentials, "", 0, decision),
    };
    record.set_request(request.method().as_str(), path);
    let mut record = Some(record);
    let result = match authorized {
        Ok((route, rest, allowed)) => send(gate, route, rest, allowed, request, &mut record).await,
        Err(refused) => {
            http::drain_request(request).await;
            Err(refused)
        }
    };
    result.unwrap_or_else(|refused| {
        if let Some(record) = &mut record {
            record.set_decision(refused.decision);
            record.set_status(refused.status.as_u16());
        }
        refused.to_response(route)
    })
}

/// Answers requests that need no credential.
fn answer_locally(gate: &GateInner, request: &Request<Incoming>) -> Option<Response<GateBody>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    // `claude` probes the second one to check for connectivity.
    let is_known = path == "/health"
        || (request.method() == Method::HEAD
            && path.ends_with("/api/hello")
            && path::is_canonical_path(path));
    let is_plain = request.uri().authority().is_none();
    let text = gate.standalone_health.as_deref().unwrap_or("ralph-gate ok");
    (is_read && is_known && is_plain).then(|| text_response(StatusCode::OK, format!("{text}\n")))
}

/// Checks whether a request may use a credential.
fn authorize<'r, 'p>(
    request: &Request<Incoming>,
    found: Option<(&'r Route, &'p str)>,
) -> Result<(&'r Route, &'p str, &'r AllowedRequest), CredentialRefusal> {
    let method = request.method();
    let refused = |status, reason, text: &str| {
        CredentialRefusal::new(status, reason, EgressDecider::Credential, text)
    };
    if request.uri().authority().is_some() || method == Method::CONNECT {
        let text =
            "this port is not a proxy — it only adds credentials — send the path without a host";
        return Err(refused(400, EgressReason::Malformed, text));
    }
    if request.headers().contains_key(UPGRADE) {
        let text = "the gate does not support WebSocket — use plain HTTP";
        return Err(refused(426, EgressReason::UnsupportedProtocol, text));
    }
    let Some((route, rest)) = found.filter(|(_, rest)| path::is_canonical_path(rest)) else {
        let text =
            "no credential is configured for this path — use the base URL from the environment";
        return Err(refused(404, EgressReason::PathNotAllowed, text));
    };
    if !auth::carries_only_placeholder(request.headers(), &route.placeholder) {
        let text =
            "the token is not this run's placeholder token — use the one from the environment";
        return Err(refused(401, EgressReason::WrongPhantom, text));
    }
    let Some(allowed) = route.find_allowed_request(method, rest, request.uri().query()) else {
        let text = format!(
            "the credential `{}` cannot be used for `{method} {rest}`",
            route.name
        );
        return Err(refused(404, EgressReason::PathNotAllowed, &text));
    };
    Ok((route, rest, allowed))
}
