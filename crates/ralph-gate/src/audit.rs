//! What the gate writes down: one record for each thing it decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::id::RunId;
use ralph_core::net::{EgressDecision, EgressReason, Endpoint, Host};
use ralph_core::ports::Clock;
use serde::{Deserialize, Serialize};

use crate::{Charge, ProviderToolUse, SandboxListener};

/// The longest text of a request that a record repeats, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// Whose connections they are. A sandbox has one; nothing in a request can claim another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxIdentity {
    /// The run.
    pub run: RunId,
    /// The sandbox, by its provider's name for it.
    pub sandbox: String,
}

/// One decision, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAuditRecord {
    /// When it was decided.
    pub at: Timestamp,
    /// Whose connection it was.
    #[serde(flatten)]
    pub identity: SandboxIdentity,
    /// The way it came.
    pub listener: SandboxListener,
    /// The host that was asked for, as far as it could be read.
    pub host: String,
    /// The port that was asked for.
    pub port: u16,
    /// The method and the path of a request that the gate could read; a query is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The part of the request that the decision is about, where it is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What was decided, and by whom.
    #[serde(flatten)]
    pub decision: EgressDecision,
    /// The status of the answer, where the gate could read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes that left the sandbox.
    pub bytes_out: u64,
    /// Bytes that came in.
    pub bytes_in: u64,
    /// How long it took.
    pub duration_ms: u64,
}

/// A host that was refused for the first time on a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedHostNotice {
    /// When.
    pub at: Timestamp,
    /// Which host. Allowing it is what would help.
    pub host: Host,
    /// On which port; 443 where only its name was looked up.
    pub port: u16,
    /// The way it came.
    pub listener: SandboxListener,
    /// Why.
    pub reason: EgressReason,
}

/// Takes what the gate writes down. It is called from the middle of a connection: it must not wait.
pub trait GateSink: Send + Sync {
    /// Takes the record of something that ended.
    fn record_audit(&self, record: GateAuditRecord);
    /// Takes the notice of a host that was refused; it comes once for each host and port.
    fn record_blocked_host(&self, notice: BlockedHostNotice);
    /// Takes what a call to a model cost.
    fn record_charge(&self, charge: Charge);
    /// Takes a provider-side tool that a request to a provider asked for; it comes once for each finding.
    fn record_provider_tool(&self, _provider: &Endpoint, _found: &ProviderToolUse) {}
}

/// Bytes in both directions.
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

/// Where records go and what they all say.
pub(crate) struct GateAuditLog {
    pub(crate) identity: SandboxIdentity,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sink: Arc<dyn GateSink>,
}

impl GateAuditLog {
    /// Returns the run.
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

    /// Opens the record of a decision about something that may not even be a host.
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
    /// Returns what counts its bytes.
    pub(crate) fn traffic(&self) -> Arc<Traffic> {
        self.traffic.clone()
    }

    /// Counts bytes that came in.
    pub(crate) fn add_received(&self, bytes: usize) {
        self.traffic.add_received(bytes);
    }

    /// Returns the way it came.
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

    /// Notes which part of the request the decision is about.
    pub(crate) fn set_detail(&mut self, detail: &str) {
        if let Some(record) = &mut self.record {
            record.detail = Some(sanitize_text(detail));
        }
    }

    /// Changes the decision after the fact: what seemed fine was not.
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
    // `tracing` fixes the level of an event at compile time, so each level has its own.
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

/// Keeps of a text what can stand in a record: printable ASCII, and not too much of it.
pub(crate) fn sanitize_text(text: &str) -> String {
    sanitize_owned_text(text.to_owned())
}

/// Does the same with a text that may be kept as it is.
fn sanitize_owned_text(text: String) -> String {
    let is_harmless = |b: u8| b.is_ascii_graphic() || b == b' ';
    if text.len() <= MAX_TEXT_BYTES && text.bytes().all(is_harmless) {
        return text;
    }
    text.bytes()
        .take(MAX_TEXT_BYTES)
        .map(|b| if is_harmless(b) { char::from(b) } else { '?' })
        .collect()
}
