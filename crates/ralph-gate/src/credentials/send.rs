//! Sends a request with its credential.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Request, Response, Uri};
use ralph_core::net::{Decider, Reason};

use super::ask::ModelAsk;
use super::back::returned;
use super::route::{Asks, Dialect, Route, Use};
use super::words::Refused;
use super::{auth, intake, unmetered};
use crate::audit::OpenRecord;
use crate::cassette::{Exchange, Tape};
use crate::gate::Inner;
use crate::http::{self, Answer, Body, BoxError, dial_error, full};
use crate::meter::{Ask, Call, Unpaid, Wire};

/// A call that may be made.
pub(super) struct Paid {
    pub(super) wire: Wire,
    pub(super) call: Call,
    pub(super) tape: Option<Tape>,
    replayed: Option<Exchange>,
}

/// Sends a request with its credential, and returns the answer, which takes the record along.
pub(super) async fn send(
    gate: &Inner,
    route: &Route,
    rest: &str,
    use_: &Use,
    request: Request<Incoming>,
    record: &mut Option<OpenRecord>,
) -> Result<Response<Body>, Refused> {
    let (mut parts, body) = request.into_parts();
    let traffic = record.as_ref().map(OpenRecord::traffic).unwrap_or_default();
    let (body, paid) = match use_.asks {
        Asks::Nothing => {
            if route.dialect != Dialect::Plain {
                gate.meter.admit().map_err(not_paid)?;
            }
            (http::outgoing(body, traffic), None)
        }
        Asks::Free(wire) => {
            let ask = read_ask(gate, (route, rest), wire, &parts.headers, body).await?;
            gate.meter.admit().map_err(not_paid)?;
            let body = ask.into_body();
            traffic.add_out(body.len());
            (full(body), None)
        }
        Asks::Answer(wire) => {
            let ask = read_ask(gate, (route, rest), wire, &parts.headers, body).await?;
            let (body, paid) = pay(gate, route, rest, ask)?;
            traffic.add_out(body.len());
            (full(body), Some(paid))
        }
    };
    let paid = match paid {
        Some(Paid {
            replayed: Some(exchange),
            call,
            ..
        }) => {
            call.forgive();
            if let Some(record) = record {
                record.set_status(exchange.status());
            }
            return Ok(exchange.response());
        }
        Some(_) | None => paid,
    };
    let method = parts.method.clone();
    if readdress(&mut parts, route, rest).is_none() {
        let text = "the request cannot be rewritten — send what the API takes";
        return Err(Refused::new(400, Reason::Malformed, Decider::Gate, text));
    }
    let is_whole = use_.asks != Asks::Nothing;
    match answered(gate, route, is_whole, Request::from_parts(parts, body)).await {
        Ok(response) => returned(route, &method, paid, response, record),
        Err(error) => {
            let error = &*error;
            // Without a connection, nothing was asked.
            if let (Some(_), Some(paid)) = (dial_error(error), paid) {
                paid.call.forgive();
            }
            Err(unanswered(gate, error))
        }
    }
}

/// The refusal of a request that the provider did not answer.
fn unanswered(gate: &Inner, error: &(dyn std::error::Error + 'static)) -> Refused {
    if gate.alone.is_some() {
        let why = dial_error(error).map(ToString::to_string);
        return Refused::unreachable(why.unwrap_or_else(|| error.to_string()));
    }
    let refusal = http::unanswered(error);
    let text = refusal.text.trim_start_matches("ralph: ");
    let reason = refusal.decision.reason;
    Refused::new(502, reason, Decider::Gate, text)
}

/// Sends a request to the provider of a route; one that is not there as a whole is sent as it arrives.
async fn answered(
    gate: &Inner,
    route: &Route,
    is_whole: bool,
    mut request: Request<Body>,
) -> Result<Response<Answer>, BoxError> {
    let place = &route.upstream.place;
    if is_whole {
        return gate.lines.request(place, request).await;
    }
    let mut uri = std::mem::take(request.uri_mut()).into_parts();
    uri.scheme = Some(place.scheme.clone());
    uri.authority = Some(place.authority.clone());
    *request.uri_mut() = Uri::from_parts(uri)?;
    Ok(gate
        .credential_client
        .request(request)
        .await?
        .map(Answer::from))
}

/// Writes the credential and the path at its provider into a request.
fn readdress(parts: &mut Parts, route: &Route, rest: &str) -> Option<()> {
    let base = &route.upstream.base;
    if *base != route.prefix {
        let mut path = format!("{base}{rest}");
        if let Some(query) = parts.uri.query() {
            path.push('?');
            path.push_str(query);
        }
        parts.uri = Uri::from(PathAndQuery::try_from(path).ok()?);
    }
    auth::exchange(&mut parts.headers, route)
}

/// Reads and parses a model request, and screens what it asks for.
async fn read_ask(
    gate: &Inner,
    (route, rest): (&Route, &str),
    wire: Wire,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<ModelAsk, Refused> {
    let received = intake::receive(&gate.limits, &gate.memory, body).await?;
    let mut ask = ModelAsk::parse(wire, headers, received)?;
    screen(gate, (route, rest), &mut ask)?;
    Ok(ask)
}

/// Refuses or rewrites what must not reach the provider. Every model request passes here, before it is
/// priced.
fn screen(gate: &Inner, (route, rest): (&Route, &str), ask: &mut ModelAsk) -> Result<(), Refused> {
    let screening = ask.screen_tools(&gate.provider_tools);
    for found in &screening.findings {
        gate.record_provider_tool(&route.upstream.endpoint, ("POST", rest), found);
    }
    if let Some(found) = screening.refused() {
        let text = found.reason();
        return Err(Refused::new(
            400,
            Reason::ProviderTool,
            Decider::Policy,
            &text,
        ));
    }
    unmetered::screen(&route.name, ask)
}

/// Opens the account of a request for an answer.
fn pay(
    gate: &Inner,
    route: &Route,
    rest: &str,
    mut ask: ModelAsk,
) -> Result<(Bytes, Paid), Refused> {
    ask.request_usage();
    let wire = ask.wire;
    let account = Ask {
        provider: route.name.clone(),
        model: ask.model().to_owned(),
        bytes: ask.len() as u64,
    };
    let call = Call::admit(&gate.meter, &gate.book.sink, account).map_err(not_paid)?;
    let body = ask.into_body();
    let (mut tape, mut replayed) = (None, None);
    if let Some(cassette) = &gate.cassette {
        let path = format!("{}{rest}", route.prefix);
        (tape, replayed) = cassette.exchange(&path, &body);
    }
    if gate.cassette.is_some() && tape.is_none() && replayed.is_none() {
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
    Ok((body, paid))
}

fn not_paid(unpaid: Unpaid) -> Refused {
    match unpaid {
        Unpaid::Spent(budget) => {
            let key = budget.key();
            let text = format!("the run's budget is spent — `{key}` is reached — stop here");
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
