//! Serves the credential port.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE, UPGRADE,
};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use ralph_core::net::{Decider, Decision, Endpoint, Reason};

use super::relay::{Relay, State};
use super::route::{Dialect, Route, Use};
use super::words::Refused;
use super::{ask, auth, path};
use crate::audit::OpenRecord;
use crate::cassette::{Exchange, Tape};
use crate::gate::Inner;
use crate::http::{self, Body, Service, dial_error, full, text_response};
use crate::meter::{Ask, Call, Gauge, Unpaid, Wire};
use crate::{Listener, Stream};

/// Serves one connection to the credential port.
pub(crate) async fn serve(gate: &Arc<Inner>, stream: impl Stream + 'static) {
    let answering = gate.clone();
    let answer = move |request: Request<Incoming>| -> Service<'static> {
        let gate = answering.clone();
        Box::pin(async move { answer(&gate, request).await })
    };
    http::connection(&gate.limits, stream, answer).await;
}

async fn answer(gate: &Inner, request: Request<Incoming>) -> Response<Body> {
    if let Some(response) = by_itself(&request) {
        return response;
    }
    let path = request.uri().path().to_owned();
    let found = gate.routes.find(&path);
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
    record.set_request(request.method().as_str(), &path);
    let answered = match judged {
        Ok((route, rest, use_)) => send(gate, route, rest, use_, request, record).await,
        Err(refused) => Err((refused, record)),
    };
    answered.unwrap_or_else(|(refused, mut record)| {
        record.set_decision(refused.decision);
        record.set_status(refused.status.as_u16());
        refused.response(route)
    })
}

/// Answers what needs no credential.
fn by_itself(request: &Request<Incoming>) -> Option<Response<Body>> {
    let is_asked = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    // The second is how `claude` finds out whether anybody is there.
    let is_known = path == "/health"
        || (request.method() == Method::HEAD
            && path.ends_with("/api/hello")
            && path::is_plain(path));
    let is_plain = request.uri().authority().is_none();
    (is_asked && is_known && is_plain)
        .then(|| text_response(StatusCode::OK, "ralph-gate ok\n".to_owned()))
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

type Answered = Result<Response<Body>, (Refused, OpenRecord)>;

/// Sends a request with its credential, and returns the answer.
async fn send(
    gate: &Inner,
    route: &Route,
    rest: &str,
    use_: &Use,
    request: Request<Incoming>,
    record: OpenRecord,
) -> Answered {
    let (mut parts, body) = request.into_parts();
    let traffic = record.traffic();
    let (body, paid) = match use_.wire {
        Some(wire) => {
            let read = read_ask(gate, route, wire, rest, &parts.headers, body).await;
            match read {
                Ok((body, paid)) => {
                    traffic.add_out(body.len());
                    (full(body), Some(paid))
                }
                Err(refused) => return Err((refused, record)),
            }
        }
        None => {
            if route.dialect != Dialect::Plain
                && let Err(unpaid) = gate.meter.admit()
            {
                return Err((not_paid(unpaid), record));
            }
            (http::outgoing(body, traffic), None)
        }
    };
    if let Some(Paid {
        replayed: Some(exchange),
        ..
    }) = &paid
    {
        return Ok(replayed(exchange, record));
    }
    let method = parts.method.clone();
    let query = parts.uri.query().map(str::to_owned);
    let Some(uri) = target(route, rest, query.as_deref()) else {
        let text = "the address cannot be written — send what the API takes";
        return Err((
            Refused::new(400, Reason::Malformed, Decider::Gate, text),
            record,
        ));
    };
    parts.uri = uri;
    if auth::exchange(&mut parts.headers, route).is_none() {
        let text = "the headers cannot be written — send what the API takes";
        return Err((
            Refused::new(400, Reason::Malformed, Decider::Gate, text),
            record,
        ));
    }
    match gate.client.request(Request::from_parts(parts, body)).await {
        Ok(response) => returned(route, &method, paid, response, record),
        Err(error) => {
            if let (Some(_), Some(paid)) = (dial_error(&error), paid) {
                paid.call.forgive();
            }
            let refusal = http::unanswered(&error);
            let text = refusal.text.trim_start_matches("ralph: ").to_owned();
            let status = StatusCode::BAD_GATEWAY.as_u16();
            let refused = Refused::new(status, refusal.decision.reason, Decider::Gate, &text);
            Err((refused, record))
        }
    }
}

/// A call that may be made.
struct Paid {
    wire: Wire,
    call: Call,
    tape: Option<Tape>,
    replayed: Option<Exchange>,
}

/// Reads what a request asks of a model, and opens its account.
async fn read_ask(
    gate: &Inner,
    route: &Route,
    wire: Wire,
    rest: &str,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(bytes::Bytes, Paid), Refused> {
    let most = gate.limits.model_request_bytes;
    let body = Limited::new(body, most).collect().await.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            let text = format!("the request has more than {most} bytes — send less");
            Refused::new(413, Reason::LimitReached, Decider::Gate, &text)
        } else {
            let text = "the request ended too early — send it whole";
            Refused::new(400, Reason::Malformed, Decider::Gate, text)
        }
    })?;
    let asked = ask::read(wire, headers, body.to_bytes())?;
    let account = Ask {
        provider: route.name.clone(),
        model: asked.model,
        bytes: asked.body.len() as u64,
    };
    let call = Call::admit(&gate.meter, &gate.book.sink, account).map_err(not_paid)?;
    let (mut tape, mut replayed) = (None, None);
    if let Some(cassette) = &gate.cassette {
        let path = format!("{}{rest}", route.prefix);
        (tape, replayed) = cassette.exchange(&path, &asked.body);
    }
    if cassette_is_over(gate, tape.is_none() && replayed.is_none()) {
        call.forgive();
        let text = "the cassette has no answer to this — record it again";
        return Err(Refused::new(404, Reason::Unreachable, Decider::Gate, text));
    }
    let paid = Paid {
        wire,
        call,
        tape,
        replayed,
    };
    Ok((asked.body, paid))
}

fn cassette_is_over(gate: &Inner, has_nothing: bool) -> bool {
    has_nothing && gate.cassette.is_some()
}

fn not_paid(unpaid: Unpaid) -> Refused {
    match unpaid {
        Unpaid::Spent(budget) => {
            let key = budget.key();
            let text =
                format!("the run's budget is spent — `{key}` is reached — raise it to go on");
            Refused::new(402, Reason::BudgetSpent, Decider::Budget, &text)
        }
        Unpaid::TooMany(wait) => {
            let seconds = wait.as_secs().max(1);
            let text = format!("too many requests in a minute — wait {seconds}s");
            Refused {
                retry_after: Some(seconds),
                ..Refused::new(429, Reason::RateLimited, Decider::Budget, &text)
            }
        }
    }
}

/// Returns where a request goes.
fn target(route: &Route, rest: &str, query: Option<&str>) -> Option<Uri> {
    let upstream = &route.upstream;
    let mut path = format!("{}{rest}", upstream.base);
    if let Some(query) = query {
        path.push('?');
        path.push_str(query);
    }
    Uri::builder()
        .scheme(upstream.scheme.clone())
        .authority(Authority::try_from(upstream.endpoint.to_string()).ok()?)
        .path_and_query(PathAndQuery::try_from(path).ok()?)
        .build()
        .ok()
}

/// Makes an answer fit for the sandbox.
fn returned(
    route: &Route,
    method: &Method,
    paid: Option<Paid>,
    response: Response<Incoming>,
    mut record: OpenRecord,
) -> Answered {
    let (mut parts, upstream) = response.into_parts();
    record.set_status(parts.status.as_u16());
    if let Err(refused) = clean(route, method, &mut parts.headers) {
        return Err((refused, record));
    }
    let (mut gauge, mut tape) = (None, None);
    if let Some(paid) = paid {
        if parts.status.is_success() {
            let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
            gauge = Some(if is_stream {
                Gauge::events(paid.wire, paid.call)
            } else {
                Gauge::whole(paid.wire, paid.call)
            });
        } else {
            paid.call.forgive();
        }
        tape = paid
            .tape
            .map(|tape| tape.answered(parts.status, &parts.headers));
    }
    let spent = "the run's budget is spent — the answer was cut — raise it to go on";
    let spent = Refused::new(402, Reason::BudgetSpent, Decider::Budget, spent);
    let relay = Relay {
        upstream,
        redact: Some(route.redactor.stream()),
        gauge,
        tape,
        last_words: spent.event(route).into(),
        record: Some(record),
        state: State::Open,
    };
    Ok(Response::from_parts(parts, relay.boxed_unsync()))
}

/// Removes from an answer's head what a sandbox must not see.
fn clean(route: &Route, method: &Method, headers: &mut HeaderMap) -> Result<(), Refused> {
    http::strip_hop_by_hop(headers);
    headers.remove(SET_COOKIE);
    headers.remove("alt-svc");
    if method != Method::HEAD {
        // Its length may change on the way.
        headers.remove(CONTENT_LENGTH);
    }
    let unreadable = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| encoding != "identity");
    if unreadable {
        let text = "the provider compressed its answer although it was not asked to";
        return Err(Refused::new(
            502,
            Reason::UnsupportedProtocol,
            Decider::Gate,
            text,
        ));
    }
    if let Some(location) = headers.get(LOCATION) {
        let location = location.to_str().ok().and_then(|text| inward(route, text));
        let Some(location) = location.and_then(|text| HeaderValue::try_from(text).ok()) else {
            let text = "the provider redirects to another host, which the credential is not for";
            return Err(Refused::new(
                502,
                Reason::ForeignRedirect,
                Decider::Credential,
                text,
            ));
        };
        headers.insert(LOCATION, location);
    }
    for value in headers.values_mut() {
        let shown = route.redactor.redact_bytes(value.as_bytes());
        if let std::borrow::Cow::Owned(shown) = shown {
            *value = HeaderValue::from_bytes(&shown)
                .unwrap_or_else(|_| HeaderValue::from_static("[REDACTED]"));
        }
    }
    Ok(())
}

/// Translates a place at the route's own host into one at the credential port.
fn inward(route: &Route, location: &str) -> Option<String> {
    let path = if location.starts_with('/') && !location.starts_with("//") {
        location
    } else {
        let uri: Uri = location.parse().ok()?;
        let upstream = &route.upstream;
        let default_port = if uri.scheme_str()? == "https" {
            443
        } else {
            80
        };
        let endpoint = Endpoint::parse(uri.authority()?.as_str(), default_port).ok()?;
        if uri.scheme() != Some(&upstream.scheme) || endpoint != upstream.endpoint {
            return None;
        }
        let start = location.find(uri.path()).filter(|_| uri.path() != "/")?;
        &location[start..]
    };
    let rest = path.strip_prefix(route.upstream.base.as_str())?;
    rest.starts_with('/')
        .then(|| format!("{}{rest}", route.prefix))
}

/// Plays a recorded answer.
fn replayed(exchange: &Exchange, mut record: OpenRecord) -> Response<Body> {
    record.set_status(exchange.status());
    exchange.response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_core::secret::Secret;

    #[test]
    fn a_redirect_stays_at_home() {
        let secret = Secret::new("real-secret".to_owned());
        let route = Route::openai(secret).unwrap();
        for (location, inside) in [
            ("/v1/models", Some("/openai/v1/models")),
            (
                "https://api.openai.com/v1/models?a=b",
                Some("/openai/v1/models?a=b"),
            ),
            (
                "https://API.openai.com:443/v1/models",
                Some("/openai/v1/models"),
            ),
            ("/other/models", None),
            ("//evil.example/v1/models", None),
            ("https://evil.example/v1/models", None),
            ("http://api.openai.com/v1/models", None),
            ("https://api.openai.com:8443/v1/models", None),
            ("https://api.openai.com@evil.example/v1/models", None),
            ("models", None),
            ("", None),
        ] {
            assert_eq!(inward(&route, location).as_deref(), inside, "{location}");
        }
    }
}
