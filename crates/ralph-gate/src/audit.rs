//! The gate's audit log: one record per decision.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::id::RunId;
use ralph_core::net::{EgressDecision, EgressReason, Endpoint, Host};
use ralph_core::ports::Clock;
use serde::{Deserialize, Serialize};

use crate::{Charge, ProviderToolUse, SandboxListener};

/// The maximum length of request text in a record, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// The run and sandbox that own a connection. It is fixed per gate; nothing in a request can change
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxIdentity {
    pub run: RunId,
    /// The provider's name for the sandbox.
    pub sandbox: String,
}

/// One decision and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAuditRecord {
    /// The time of the decision.
    pub at: Timestamp,
    #[serde(flatten)]
    pub identity: SandboxIdentity,
    pub listener: SandboxListener,
    /// The requested host, as far as it could be parsed.
    pub host: String,
    pub port: u16,
    /// The method and path of a request that the gate could read, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The part of the request that the decision concerns, if it is not the whole request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(flatten)]
    pub decision: EgressDecision,
    /// The response status, if the gate could read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes sent by the sandbox.
    pub bytes_out: u64,
    /// Bytes received by the sandbox.
    pub bytes_in: u64,
    pub duration_ms: u64,
}

/// The first refusal of a host on a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedHostNotice {
    pub at: Timestamp,
    /// The host to allow so that the request succeeds.
    pub host: Host,
    /// The requested port, or 443 for a DNS lookup.
    pub port: u16,
    pub listener: SandboxListener,
    pub reason: EgressReason,
}

/// Receives the gate's records. Its methods are called while a connection is being served and must
/// not block.
pub trait GateSink: Send + Sync {
    /// Receives the record of a finished connection or request.
    fn record_audit(&self, record: GateAuditRecord);
    /// Receives the notice of a refused host, once per host and port.
    fn record_blocked_host(&self, notice: BlockedHostNotice);
    /// Receives the cost of a model call.
    fn record_charge(&self, charge: Charge);
    /// Receives a provider-side tool that a request asked for, once per finding.
    fn record_provider_tool(&self, _provider: &Endpoint, _found: &ProviderToolUse) {}
}

/// Byte counters for both directions.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl Traffic {
    pub(crate) fn add_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A record that is written when it is dropped.
pub(crate) struct OpenRecord {
    record: Option<GateAuditRecord>,
    started: Duration,
    traffic: Arc<Traffic>,
    clock: Arc<dyn Clock>,
    sink: Arc<dyn GateSink>,
}

/// The sink and identity shared by all records of a gate.
pub(crate) struct GateAuditLog {
    pub(crate) identity: SandboxIdentity,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sink: Arc<dyn GateSink>,
}

impl GateAuditLog {
    /// Returns the run ID.
    pub(crate) fn run(&self) -> &RunId {
        &self.identity.run
    }

    /// Opens the record of a decision about an endpoint.
    pub(crate) fn open(
        &self,
        listener: SandboxListener,
        endpoint: &Endpoint,
        decision: EgressDecision,
    ) -> OpenRecord {
        self.open_unparsed(
            listener,
            &endpoint.host.to_string(),
            endpoint.port,
            decision,
        )
    }

    /// Opens the record of a decision about a target that may not be a valid host.
    pub(crate) fn open_unparsed(
        &self,
        listener: SandboxListener,
        host: &str,
        port: u16,
        decision: EgressDecision,
    ) -> OpenRecord {
        let record = GateAuditRecord {
            at: self.clock.now(),
            identity: self.identity.clone(),
            listener,
            host: sanitize_text(host),
            port,
            request: None,
            detail: None,
            decision,
            status: None,
            bytes_out: 0,
            bytes_in: 0,
            duration_ms: 0,
        };
        OpenRecord {
            record: Some(record),
            started: self.clock.monotonic(),
            traffic: Arc::default(),
            clock: self.clock.clone(),
            sink: self.sink.clone(),
        }
    }
}

impl OpenRecord {
    /// Returns the byte counters.
    pub(crate) fn traffic(&self) -> Arc<Traffic> {
        self.traffic.clone()
    }

    /// Counts received bytes.
    pub(crate) fn add_received(&self, bytes: usize) {
        self.traffic.add_received(bytes);
    }

    /// Returns the listener that accepted the connection.
    pub(crate) fn listener(&self) -> SandboxListener {
        self.record
            .as_ref()
            .map_or(SandboxListener::Proxy, |record| record.listener)
    }

    pub(crate) fn set_request(&mut self, method: &str, path: &str) {
        if let Some(record) = &mut self.record {
            record.request = Some(sanitize_owned_text(format!("{method} {path}")));
        }
    }

    pub(crate) fn set_status(&mut self, status: u16) {
        if let Some(record) = &mut self.record {
            record.status = Some(status);
        }
    }

    /// Records the part of the request that the decision concerns.
    pub(crate) fn set_detail(&mut self, detail: &str) {
        if let Some(record) = &mut self.record {
            record.detail = Some(sanitize_text(detail));
        }
    }

    /// Replaces the decision when a later check refuses the request.
    pub(crate) fn set_decision(&mut self, decision: EgressDecision) {
        if let Some(record) = &mut self.record {
            record.decision = decision;
        }
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            let duration = self.clock.monotonic().saturating_sub(self.started);
            record.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            record.bytes_out = self.traffic.sent.load(Ordering::Relaxed);
            record.bytes_in = self.traffic.received.load(Ordering::Relaxed);
            log_decision(&record);
            self.sink.record_audit(record);
        }
    }
}

fn log_decision(record: &GateAuditRecord) {
    // `tracing` fixes the level of an event at compile time, so each level needs its own call.
    macro_rules! log_at {
        ($level:ident, $message:literal) => {
            tracing::$level!(
                sandbox = record.identity.sandbox,
                listener = ?record.listener,
                host = record.host,
                port = record.port,
                request = record.request,
                detail = record.detail,
                reason = %record.decision.reason,
                decider = ?record.decision.decider,
                status = record.status,
                bytes_out = record.bytes_out,
                bytes_in = record.bytes_in,
                ms = record.duration_ms,
                $message
            )
        };
    }
    if record.decision.is_allowed() {
        log_at!(debug, "egress allowed");
    } else {
        log_at!(info, "egress denied");
    }
}

/// Returns the text limited to printable ASCII and the maximum length.
pub(crate) fn sanitize_text(text: &str) -> String {
    sanitize_owned_text(text.to_owned())
}

/// Like `sanitize_text`, but reuses the string if it needs no change.
fn sanitize_owned_text(text: String) -> String {
    let is_printable = |b: u8| b.is_ascii_graphic() || b == b' ';
    if text.len() <= MAX_TEXT_BYTES && text.bytes().all(is_printable) {
        return text;
    }
    text.bytes()
        .take(MAX_TEXT_BYTES)
        .map(|b| if is_printable(b) { char::from(b) } else { '?' })
        .collect()
}
