//! Receives the telemetry of the agent inside the sandbox: OTLP over HTTP on the credential port.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use ralph_core::net::{EgressDecider, EgressDecision, EgressReason};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::auth;
use super::placeholder_token::PlaceholderToken;
use crate::SandboxListener;
use crate::gate::GateInner;
use crate::http::{self, GateBody, full_body, text_response};

/// The path below which telemetry arrives.
pub(crate) const TELEMETRY_PATH: &str = "/otlp";

/// The most bytes of one upload.
const MAX_BYTES: usize = 1 << 20;

/// The most uploads at the same time.
const MAX_UPLOADS: usize = 2;

/// The telemetry of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryUpload {
    pub signal: TelemetrySignal,
    pub encoding: TelemetryEncoding,
    pub body: Bytes,
}

/// The kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetrySignal {
    Metrics,
    Logs,
    Traces,
}

/// The encoding of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryEncoding {
    Json,
    Protobuf,
}

/// An upload is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the telemetry cannot be decoded")]
pub struct InvalidTelemetryError;

/// Receives the telemetry of an agent. It is called while a connection is being served and must not block.
pub trait TelemetrySink: Send + Sync {
    /// Receives an upload with a valid token.
    fn receive(&self, upload: &TelemetryUpload) -> Result<(), InvalidTelemetryError>;
}

/// The part of a gate that accepts telemetry.
pub(crate) struct TelemetryIntake {
    token: PlaceholderToken,
    sink: Arc<dyn TelemetrySink>,
    uploads: Semaphore,
}

impl TelemetryIntake {
    pub(crate) fn new(sink: Arc<dyn TelemetrySink>) -> Self {
        Self {
            token: PlaceholderToken::random("ralph-otlp-", 43, ""),
            sink,
            uploads: Semaphore::new(MAX_UPLOADS),
        }
    }

    pub(crate) fn token(&self) -> &PlaceholderToken {
        &self.token
    }
}

/// Why an upload is refused.
struct UploadRefusal(StatusCode, &'static str);

/// Answers a request with telemetry. Returns the request if it is another one.
pub(super) async fn receive(
    gate: &GateInner,
    request: Request<Incoming>,
) -> Result<Response<GateBody>, Request<Incoming>> {
    let path = request.uri().path();
    let Some(signal) = path
        .strip_prefix(TELEMETRY_PATH)
        .and_then(|p| p.strip_prefix('/'))
    else {
        return Err(request);
    };
    let Some(intake) = gate.telemetry.get() else {
        return Err(request);
    };
    let signal = match signal {
        "v1/metrics" => Some(TelemetrySignal::Metrics),
        "v1/logs" => Some(TelemetrySignal::Logs),
        "v1/traces" => Some(TelemetrySignal::Traces),
        _ => None,
    };
    let checked = check_head(&request, intake, signal);
    let (signal, encoding) = match checked {
        Ok(checked) => checked,
        Err(refusal) => {
            record_refusal(gate, &request, refusal.0);
            http::drain_request(request).await;
            return Ok(refusal.to_response());
        }
    };
    let Ok(_slot) = intake.uploads.try_acquire() else {
        http::drain_request(request).await;
        return Ok(UploadRefusal(StatusCode::TOO_MANY_REQUESTS, "too many uploads").to_response());
    };
    let body = Limited::new(request.into_body(), MAX_BYTES).collect();
    let body = match timeout(gate.limits.body_timeout, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let text = "the upload is incomplete or has more than 1 MiB";
            return Ok(UploadRefusal(StatusCode::PAYLOAD_TOO_LARGE, text).to_response());
        }
        Err(_) => {
            let text = "the upload took too long";
            return Ok(UploadRefusal(StatusCode::REQUEST_TIMEOUT, text).to_response());
        }
    };
    let upload = TelemetryUpload {
        signal,
        encoding,
        body,
    };
    Ok(match intake.sink.receive(&upload) {
        Ok(()) => accepted(encoding),
        Err(_) => UploadRefusal(StatusCode::BAD_REQUEST, "it is not valid OTLP").to_response(),
    })
}

fn check_head(
    request: &Request<Incoming>,
    intake: &TelemetryIntake,
    signal: Option<TelemetrySignal>,
) -> Result<(TelemetrySignal, TelemetryEncoding), UploadRefusal> {
    if !auth::carries_only_placeholder(request.headers(), &intake.token) {
        let text = "the token is not that of this run's telemetry";
        return Err(UploadRefusal(StatusCode::UNAUTHORIZED, text));
    }
    let Some(signal) = signal.filter(|_| request.method() == Method::POST) else {
        let text = "telemetry is posted to `v1/metrics`, `v1/logs` or `v1/traces`";
        return Err(UploadRefusal(StatusCode::NOT_FOUND, text));
    };
    let encoding = encoding(request.headers()).ok_or(UploadRefusal(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "telemetry is uncompressed JSON or protobuf",
    ))?;
    Ok((signal, encoding))
}

fn encoding(headers: &HeaderMap) -> Option<TelemetryEncoding> {
    let is_plain = headers
        .get(CONTENT_ENCODING)
        .is_none_or(|encoding| encoding.as_bytes() == b"identity");
    let kind = headers.get(CONTENT_TYPE)?.as_bytes();
    let kind = kind.split(|byte| *byte == b';').next()?.trim_ascii();
    match kind {
        b"application/json" if is_plain => Some(TelemetryEncoding::Json),
        b"application/x-protobuf" if is_plain => Some(TelemetryEncoding::Protobuf),
        _ => None,
    }
}

fn record_refusal(gate: &GateInner, request: &Request<Incoming>, status: StatusCode) {
    let reason = if status == StatusCode::UNAUTHORIZED {
        EgressReason::WrongPhantom
    } else {
        EgressReason::Malformed
    };
    let decision = EgressDecision::denied(reason, EgressDecider::Gate);
    let listener = SandboxListener::Credentials;
    let mut record = gate.audit_log.open_unparsed(listener, "", 0, decision);
    record.set_request(request.method().as_str(), request.uri().path());
    record.set_status(status.as_u16());
}

/// Returns the empty message of a complete success.
fn accepted(encoding: TelemetryEncoding) -> Response<GateBody> {
    let (text, kind) = match encoding {
        TelemetryEncoding::Json => ("{}", "application/json"),
        TelemetryEncoding::Protobuf => ("", "application/x-protobuf"),
    };
    let mut response = Response::new(full_body(text));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

impl UploadRefusal {
    fn to_response(&self) -> Response<GateBody> {
        let Self(status, text) = self;
        text_response(*status, format!("ralph: telemetry refused — {text}\n"))
    }
}
