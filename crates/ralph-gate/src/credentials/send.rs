//! Sends a request with its credential.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Request, Response, Uri};
use ralph_core::net::{EgressDecider, EgressReason};
use ralph_core::secret::Secret;
use tokio::time::timeout;

use super::background_reader::{BackgroundReader, UpstreamCall};
use super::model_request::ParsedModelRequest;
use super::refusal::CredentialRefusal;
use super::response::build_response;
use super::route::{AllowedRequest, ErrorDialect, RequestBilling, Route, SentCredential};
use super::{auth, request_body, unmetered};
use crate::audit::OpenRecord;
use crate::cassette::{ExchangeRecorder, ReplayedExchange};
use crate::gate::GateInner;
use crate::http::{self, BoxError, GateBody, HttpOrigin, find_dial_error, full_body};
use crate::memory::HeldBytes;
use crate::meter::{
    AdmissionError, BadField, BoundedRequest, MeteredCall, MeteredRequest, ModelWireFormat,
    TokenBound,
};

/// The input window of a request with a `context-1m` beta flag, in tokens.
const EXTENDED_WINDOW: u64 = 1_000_000;
/// The `Retry-After` of a request refused for too many concurrent calls, in seconds.
const RETRY_AFTER_SECONDS: u64 = 5;

/// A metered call with a reservation.
pub(super) struct AdmittedCall {
    pub(super) wire: ModelWireFormat,
    pub(super) call: MeteredCall,
    /// The share of the byte budget for the buffered response.
    pub(super) memory: HeldBytes,
    pub(super) recorder: Option<ExchangeRecorder>,
    replayed: Option<ReplayedExchange>,
}

/// Sends a request with its credential and returns the response, whose body owns the audit record.
pub(super) async fn send(
    gate: &Arc<GateInner>,
    route: &Route,
    rest: &str,
    allowed: &AllowedRequest,
    request: Request<Incoming>,
    record: &mut Option<OpenRecord>,
) -> Result<Response<GateBody>, CredentialRefusal> {
    let (mut parts, body) = request.into_parts();
    let traffic = record.as_ref().map(OpenRecord::traffic).unwrap_or_default();
    let (body, admitted) = match allowed.billing {
        RequestBilling::Passthrough => {
            if route.dialect != ErrorDialect::Plain {
                gate.meter.admit().map_err(admission_refusal)?;
            }
            (http::counted_request_body(body, traffic), None)
        }
        RequestBilling::Free(wire) => {
            let parsed = read_request(gate, (route, rest), wire, &parts.headers, body).await?;
            gate.meter.admit().map_err(admission_refusal)?;
            let body = parsed.into_body();
            traffic.add_sent(body.len());
            (full_body(body), None)
        }
        RequestBilling::Metered(wire) | RequestBilling::MeteredUnlimited(wire) => {
            let parsed = read_request(gate, (route, rest), wire, &parts.headers, body).await?;
            let is_limitable = matches!(allowed.billing, RequestBilling::Metered(_));
            let bound = bound_tokens(gate, route, &parsed, &parts.headers, is_limitable)?;
            let (body, admitted) = admit_call(gate, route, rest, parsed, bound).await?;
            traffic.add_sent(body.len());
            (full_body(body), Some(admitted))
        }
    };
    let admitted = match admitted {
        Some(AdmittedCall {
            replayed: Some(exchange),
            call,
            ..
        }) => {
            call.release();
            if let Some(record) = record {
                record.set_status(exchange.status());
            }
            return Ok(exchange.response());
        }
        Some(_) | None => admitted,
    };
    let method = parts.method.clone();
    let credential = add_credential(&mut parts, route, rest).await?;
    let request = Request::from_parts(parts, body);
    let response = send_upstream(gate.clone(), route.upstream.origin.clone(), request);
    let reader = BackgroundReader::new(&gate.limits);
    match UpstreamCall::new(response, admitted, reader).await {
        (Ok(response), call) => {
            let route = (route, &credential.redactor);
            build_response(route, &method, call, response, record, reader)
        }
        (Err(error), call) => Err(upstream_failure(gate, &*error, call)),
    }
}

/// Writes the credential that is valid now and the upstream path into a request. Returns the credential.
async fn add_credential(
    parts: &mut Parts,
    route: &Route,
    rest: &str,
) -> Result<SentCredential, CredentialRefusal> {
    let refused = |status, reason, text: &str| {
        CredentialRefusal::new(status, reason, EgressDecider::Gate, text)
    };
    let credential = route.current_credential().await.map_err(|error| {
        let name = &route.name;
        let text =
            format!("the credential `{name}` cannot be read — {error} — see `ralph scm check`");
        refused(502, EgressReason::Unreachable, &text)
    })?;
    if rewrite_request(parts, (route, &credential.secret), rest).is_none() {
        let text = "the request cannot be forwarded — send a valid API request";
        return Err(refused(400, EgressReason::Malformed, text));
    }
    Ok(credential)
}

/// Returns the refusal for a request to which the provider did not respond.
fn upstream_failure(
    gate: &GateInner,
    error: &(dyn std::error::Error + 'static),
    admitted: Option<AdmittedCall>,
) -> CredentialRefusal {
    // Without a connection, the provider received nothing to bill.
    if let (Some(_), Some(admitted)) = (find_dial_error(error), admitted) {
        admitted.call.release();
    }
    if gate.standalone_health.is_some() {
        let why = find_dial_error(error).map(ToString::to_string);
        return CredentialRefusal::unreachable(why.unwrap_or_else(|| error.to_string()));
    }
    let refusal = http::upstream_refusal(error);
    let text = refusal.text.trim_start_matches("ralph: ");
    let reason = refusal.decision.reason;
    CredentialRefusal::new(502, reason, EgressDecider::Gate, text)
}

/// Sends a request to a provider.
async fn send_upstream(
    gate: Arc<GateInner>,
    origin: HttpOrigin,
    mut request: Request<GateBody>,
) -> Result<Response<Incoming>, BoxError> {
    let mut uri = std::mem::take(request.uri_mut()).into_parts();
    uri.scheme = Some(origin.scheme);
    uri.authority = Some(origin.authority);
    *request.uri_mut() = Uri::from_parts(uri)?;
    Ok(gate.credential_client.request(request).await?)
}

/// Writes the credential and the upstream path into a request.
fn rewrite_request(
    parts: &mut Parts,
    (route, secret): (&Route, &Secret),
    rest: &str,
) -> Option<()> {
    let base = &route.upstream.base_path;
    if *base != route.prefix {
        let mut path = format!("{base}{rest}");
        if let Some(query) = parts.uri.query() {
            path.push('?');
            path.push_str(query);
        }
        let Ok(path) = PathAndQuery::try_from(path) else {
            return None;
        };
        parts.uri = Uri::from(path);
    }
    auth::replace_credentials(&mut parts.headers, route, secret)
}

/// Reads, parses and screens a model request.
async fn read_request(
    gate: &GateInner,
    (route, rest): (&Route, &str),
    wire: ModelWireFormat,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<ParsedModelRequest, CredentialRefusal> {
    let received = request_body::receive(&gate.limits, &gate.memory, body).await?;
    let mut model_request = ParsedModelRequest::parse(wire, headers, received)?;
    screen(gate, (route, rest), &mut model_request)?;
    Ok(model_request)
}

/// Refuses or rewrites options that must not reach the provider. Every model request is screened
/// before it is priced.
fn screen(
    gate: &GateInner,
    (route, rest): (&Route, &str),
    model_request: &mut ParsedModelRequest,
) -> Result<(), CredentialRefusal> {
    let screening = model_request.screen_tools(&gate.provider_tools);
    for found in &screening.findings {
        gate.record_provider_tool(&route.upstream.endpoint, ("POST", rest), found);
    }
    if let Some(found) = screening.refused() {
        let text = found.reason();
        return Err(CredentialRefusal::new(
            400,
            EgressReason::ProviderTool,
            EgressDecider::Policy,
            &text,
        ));
    }
    unmetered::screen(&route.name, gate.meter.has_cost_budget(), model_request)
}

/// Returns an upper bound on the tokens that a request can be billed for.
fn bound_tokens(
    gate: &GateInner,
    route: &Route,
    model_request: &ParsedModelRequest,
    headers: &HeaderMap,
    is_limitable: bool,
) -> Result<TokenBound, CredentialRefusal> {
    let mut window = gate.meter.window(&route.name, model_request.model());
    if let Some(window) = &mut window
        && auth::betas(headers).any(|beta| beta.starts_with("context-1m"))
    {
        window.max_input = window.max_input.max(EXTENDED_WINDOW);
    }
    let measured = BoundedRequest {
        wire: model_request.wire,
        fields: model_request.fields(),
        bytes: model_request.len() as u64,
        window,
        is_limitable,
    };
    measured.bound().map_err(|BadField(key)| {
        let text = format!(
            "the request cannot be priced — `{key}` is not a valid count — send a positive \
             whole number"
        );
        CredentialRefusal::new(400, EgressReason::Malformed, EgressDecider::Budget, &text)
    })
}

/// Reserves the cost of a request and returns the request to send, with its output limited to the
/// remaining budget if necessary.
async fn admit_call(
    gate: &GateInner,
    route: &Route,
    rest: &str,
    mut model_request: ParsedModelRequest,
    bound: TokenBound,
) -> Result<(Bytes, AdmittedCall), CredentialRefusal> {
    model_request.request_usage();
    let wire = model_request.wire;
    let metered_request = MeteredRequest {
        provider: route.name.clone(),
        model: model_request.model().to_owned(),
        bound,
    };
    let wait = gate.limits.reservation_wait;
    let acquiring = gate.model_calls.clone().acquire_owned();
    let Ok(Ok(slot)) = timeout(wait, acquiring).await else {
        return Err(too_many_calls(gate.limits.model_calls));
    };
    let result = MeteredCall::admit(
        &gate.meter,
        &gate.audit_log.sink,
        metered_request,
        slot,
        wait,
    )
    .await;
    let (call, limit) = result.map_err(admission_refusal)?;
    if let Some(limit) = limit {
        model_request.limit_output(&route.name, limit);
    }
    let body = model_request.into_body();
    let (mut recorder, mut replayed) = (None, None);
    if let Some(cassette) = &gate.cassette {
        let path = format!("{}{rest}", route.prefix);
        (recorder, replayed) = cassette.exchange(&path, &body);
    }
    if gate.cassette.is_some() && recorder.is_none() && replayed.is_none() {
        call.release();
        let text = "the cassette has no response for this request — record it again";
        return Err(CredentialRefusal::new(
            404,
            EgressReason::Unreachable,
            EgressDecider::Gate,
            text,
        ));
    }
    let admitted = AdmittedCall {
        wire,
        call,
        memory: gate.memory.hold(),
        recorder,
        replayed,
    };
    Ok((body, admitted))
}

/// Refuses a call beyond the concurrency limit.
fn too_many_calls(max: usize) -> CredentialRefusal {
    let text = format!("{max} model calls are already running — wait for one of them to end");
    CredentialRefusal {
        retry_after: Some(RETRY_AFTER_SECONDS),
        ..CredentialRefusal::new(429, EgressReason::LimitReached, EgressDecider::Gate, &text)
    }
}

fn admission_refusal(error: AdmissionError) -> CredentialRefusal {
    match error {
        AdmissionError::Insufficient(budget) => {
            let key = budget.key();
            let text = format!(
                "the run's budget does not cover this request — the rest of `{key}` pays for less \
                 than its input and a short response — stop here, or send a smaller request"
            );
            CredentialRefusal::new(402, EgressReason::BudgetSpent, EgressDecider::Budget, &text)
        }
        AdmissionError::Spent(budget) => {
            let key = budget.key();
            let text = format!("the run's budget is spent — `{key}` is reached — stop here");
            CredentialRefusal::new(402, EgressReason::BudgetSpent, EgressDecider::Budget, &text)
        }
        AdmissionError::RateLimited(wait) => {
            let seconds = wait.as_secs().max(1);
            let text = format!("too many requests per minute — wait {seconds}s");
            CredentialRefusal {
                retry_after: Some(seconds),
                ..CredentialRefusal::new(
                    429,
                    EgressReason::RateLimited,
                    EgressDecider::Budget,
                    &text,
                )
            }
        }
    }
}
