//! Sends a request with its credential.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Request, Response, Uri};
use ralph_core::net::{Decider, Reason};
use tokio::time::timeout;

use super::ask::ModelAsk;
use super::back::returned;
use super::read_on::{ReadOn, Underway};
use super::route::{Asks, Dialect, Route, Use};
use super::words::Refused;
use super::{auth, intake, unmetered};
use crate::audit::OpenRecord;
use crate::cassette::{Exchange, Tape};
use crate::gate::Inner;
use crate::http::{self, Answer, Body, BoxError, Place, dial_error, full};
use crate::memory::HeldBytes;
use crate::meter::{Ask, BadField, Call, Measured, TokenBound, Unpaid, Wire};

/// The context window of models whose request asks for the extended one.
const EXTENDED_WINDOW: u64 = 1_000_000;
/// When a client should try again that found too many calls under way, in seconds.
const RETRY_AFTER: u64 = 5;

/// A call that may be made.
pub(super) struct Paid {
    pub(super) wire: Wire,
    pub(super) call: Call,
    /// Holds what is buffered of the answer.
    pub(super) memory: HeldBytes,
    pub(super) tape: Option<Tape>,
    replayed: Option<Exchange>,
}

/// Sends a request with its credential, and returns the answer, which takes the record along.
pub(super) async fn send(
    gate: &Arc<Inner>,
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
        Asks::Answer(wire) | Asks::FixedAnswer(wire) => {
            let ask = read_ask(gate, (route, rest), wire, &parts.headers, body).await?;
            let is_limitable = matches!(use_.asks, Asks::Answer(_));
            let bound = measure(gate, route, &ask, &parts.headers, is_limitable)?;
            let (body, paid) = pay(gate, route, rest, ask, bound).await?;
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
    let request = Request::from_parts(parts, body);
    let place = route.upstream.place.clone();
    let answering = answered(gate.clone(), place, is_whole, request);
    let read_on = ReadOn::new(&gate.limits);
    match Underway::new(answering, paid, read_on).await {
        (Ok(response), paid) => returned(route, &method, paid, response, record, read_on),
        (Err(error), paid) => Err(unanswered(gate, &*error, paid)),
    }
}

/// The refusal of a request that the provider did not answer.
fn unanswered(
    gate: &Inner,
    error: &(dyn std::error::Error + 'static),
    paid: Option<Paid>,
) -> Refused {
    // Without a connection, nothing was asked.
    if let (Some(_), Some(paid)) = (dial_error(error), paid) {
        paid.call.forgive();
    }
    if gate.alone.is_some() {
        let why = dial_error(error).map(ToString::to_string);
        return Refused::unreachable(why.unwrap_or_else(|| error.to_string()));
    }
    let refusal = http::unanswered(error);
    let text = refusal.text.trim_start_matches("ralph: ");
    let reason = refusal.decision.reason;
    Refused::new(502, reason, Decider::Gate, text)
}

/// Sends a request to a provider; one that is not there as a whole is sent as it arrives.
async fn answered(
    gate: Arc<Inner>,
    place: Place,
    is_whole: bool,
    mut request: Request<Body>,
) -> Result<Response<Answer>, BoxError> {
    if is_whole {
        return gate.lines.request(&place, request).await;
    }
    let mut uri = std::mem::take(request.uri_mut()).into_parts();
    uri.scheme = Some(place.scheme);
    uri.authority = Some(place.authority);
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
    unmetered::screen(&route.name, gate.meter.limits_cost(), ask)
}

/// Returns the most that a request can be billed for.
fn measure(
    gate: &Inner,
    route: &Route,
    ask: &ModelAsk,
    headers: &HeaderMap,
    is_limitable: bool,
) -> Result<TokenBound, Refused> {
    let mut window = gate.meter.window(&route.name, ask.model());
    if let Some(window) = &mut window
        && auth::betas(headers).any(|beta| beta.starts_with("context-1m"))
    {
        window.max_input = window.max_input.max(EXTENDED_WINDOW);
    }
    let measured = Measured {
        wire: ask.wire,
        fields: ask.fields(),
        bytes: ask.len() as u64,
        window,
        is_limitable,
    };
    measured.bound().map_err(|BadField(key)| {
        let text = format!("the request cannot be priced — `{key}` is not a count — send a number");
        Refused::new(400, Reason::Malformed, Decider::Budget, &text)
    })
}

/// Reserves the cost of a request, and returns what to send: its output may be limited to what is left.
async fn pay(
    gate: &Inner,
    route: &Route,
    rest: &str,
    mut ask: ModelAsk,
    bound: TokenBound,
) -> Result<(Bytes, Paid), Refused> {
    ask.request_usage();
    let wire = ask.wire;
    let account = Ask {
        provider: route.name.clone(),
        model: ask.model().to_owned(),
        bound,
    };
    let wait = gate.limits.reservation_wait;
    let acquiring = gate.model_calls.clone().acquire_owned();
    let Ok(Ok(slot)) = timeout(wait, acquiring).await else {
        return Err(too_many_calls(gate.limits.model_calls));
    };
    let admitted = Call::admit(&gate.meter, &gate.book.sink, account, slot, wait).await;
    let (call, limit) = admitted.map_err(not_paid)?;
    if let Some(limit) = limit {
        ask.limit_output(&route.name, limit);
    }
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
        memory: gate.memory.hold(),
        tape,
        replayed,
    };
    Ok((body, paid))
}

/// The refusal of a call beside too many others.
fn too_many_calls(most: usize) -> Refused {
    let text = format!("{most} calls to models are under way — wait for one of them to end");
    Refused {
        retry_after: Some(RETRY_AFTER),
        ..Refused::new(429, Reason::LimitReached, Decider::Gate, &text)
    }
}

fn not_paid(unpaid: Unpaid) -> Refused {
    match unpaid {
        Unpaid::Short(budget) => {
            let key = budget.key();
            let text = format!(
                "the run's budget does not cover this request — what is left of `{key}` pays for less \
                 than its input and a short answer — stop here, or send less"
            );
            Refused::new(402, Reason::BudgetSpent, Decider::Budget, &text)
        }
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
