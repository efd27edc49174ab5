//! Serves the credential port.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::{Method, Request, Response, StatusCode};
use ralph_core::net::{Decider, Decision, Reason};

use super::route::{Route, Use};
use super::send::send;
use super::words::Refused;
use super::{auth, path};
use crate::gate::Inner;
use crate::http::{self, Body, Service, text_response};
use crate::{Listener, Stream};

/// Serves one connection to the credential port.
pub(crate) async fn serve(gate: &Arc<Inner>, stream: impl Stream + 'static) {
    let answering = gate.clone();
    let answer = move |request: Request<Incoming>| -> Service<'static> {
        let gate = answering.clone();
        Box::pin(async move { answer(&gate, request).await })
    };
    http::connection(gate, Listener::Credentials, stream, answer).await;
}

async fn answer(gate: &Arc<Inner>, request: Request<Incoming>) -> Response<Body> {
    if let Some(response) = by_itself(gate, &request) {
        return response;
    }
    let uri = request.uri().clone();
    let path = uri.path();
    let found = gate.routes.find(path);
    let route = found.map(|(route, _)| route);
    let judged = judge(&request, found);
    let decision = match &judged {
        Ok(_) => Decision::allowed(Reason::CredentialRoute, Decider::Credential),
        Err(refused) => refused.decision,
    };
    let mut record = match route {
        Some(route) => gate
            .book
            .open(Listener::Credentials, &route.upstream.endpoint, decision),
        None => gate.book.open_text(Listener::Credentials, "", 0, decision),
    };
    record.set_request(request.method().as_str(), path);
    let mut record = Some(record);
    let answered = match judged {
        Ok((route, rest, use_)) => send(gate, route, rest, use_, request, &mut record).await,
        Err(refused) => {
            http::drain(request).await;
            Err(refused)
        }
    };
    answered.unwrap_or_else(|refused| {
        if let Some(record) = &mut record {
            record.set_decision(refused.decision);
            record.set_status(refused.status.as_u16());
        }
        refused.response(route)
    })
}

/// Answers what needs no credential.
fn by_itself(gate: &Inner, request: &Request<Incoming>) -> Option<Response<Body>> {
    let is_asked = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    // The second is how `claude` finds out whether anybody is there.
    let is_known = path == "/health"
        || (request.method() == Method::HEAD
            && path.ends_with("/api/hello")
            && path::is_plain(path));
    let is_plain = request.uri().authority().is_none();
    let text = gate.alone.as_deref().unwrap_or("ralph-gate ok");
    (is_asked && is_known && is_plain).then(|| text_response(StatusCode::OK, format!("{text}\n")))
}

/// Decides whether a request is one that a credential is for.
fn judge<'r, 'p>(
    request: &Request<Incoming>,
    found: Option<(&'r Route, &'p str)>,
) -> Result<(&'r Route, &'p str, &'r Use), Refused> {
    let method = request.method();
    let refused =
        |status, reason, text: &str| Refused::new(status, reason, Decider::Credential, text);
    if request.uri().authority().is_some() || method == Method::CONNECT {
        let text = "this port is no proxy — it only adds credentials — send the path alone";
        return Err(refused(400, Reason::Malformed, text));
    }
    if request.headers().contains_key(UPGRADE) {
        let text = "no WebSocket goes through the gate — use plain HTTP";
        return Err(refused(426, Reason::UnsupportedProtocol, text));
    }
    let Some((route, rest)) = found.filter(|(_, rest)| path::is_plain(rest)) else {
        let text = "no credential is for this path — use the base URL that the environment names";
        return Err(refused(404, Reason::PathNotAllowed, text));
    };
    if !auth::is_ours(request.headers(), &route.phantom) {
        let text =
            "this is not the stand-in of this run's credential — use the one in the environment";
        return Err(refused(401, Reason::WrongPhantom, text));
    }
    let Some(use_) = route.find(method, rest, request.uri().query()) else {
        let text = format!(
            "the credential `{}` is not for `{method} {rest}`",
            route.name
        );
        return Err(refused(404, Reason::PathNotAllowed, &text));
    };
    Ok((route, rest, use_))
}
