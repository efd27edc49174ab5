//! The run's side of its gate.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ralph_core::budget::{Budget, BudgetLimits as Budgets};
use ralph_core::money::Usd;
use ralph_core::net::{Allowlist, AllowlistEntry, EgressReason, Endpoint, Host};
use ralph_core::ports::{AgentMeasurements, Allowance, GateControl, GateEvent, ProviderFailure};
use ralph_gate::{
    BlockedHostNotice, Charge, CostMeter, Gate, GateAuditRecord, GateSink, ProviderToolUse, Route,
    SandboxListener,
};

use super::agent_telemetry::AgentTelemetry;
use super::credential_port::CredentialPort;
use super::egress_log::EgressLog;
use crate::telemetry::WorkCounters;

/// The number of characters of a command that are reported.
const MAX_COMMAND_CHARS: usize = 200;

/// This many refusals in a row are not an accident: an agent would retry for minutes.
const MAX_REFUSALS: u32 = 3;

/// The run's side of its gate. Dropping it closes the gate, because the run has ended.
pub struct RunGate {
    listener: Arc<GateListener>,
    meter: Arc<CostMeter>,
    /// The port on this machine that leads to the gate, if it has one.
    port: OnceLock<CredentialPort>,
    /// Set after the gate is created, because creating it requires its listener.
    gate: OnceLock<Gate>,
}

/// Listens to a gate. Separate from [`RunGate`], because the gate must end when that is dropped.
struct GateListener {
    events: Mutex<GateEventQueue>,
    records: EgressLog,
    /// How often in a row the provider has refused the credential.
    refusals: AtomicU32,
    /// The failure of the last call to the provider.
    failure: Mutex<Option<ProviderFailure>>,
    /// The command that runs in the sandbox.
    command: Mutex<Option<String>>,
    /// Counts the decisions, if anything reads the counts.
    counters: OnceLock<Arc<WorkCounters>>,
    /// The telemetry of the agent.
    telemetry: Arc<AgentTelemetry>,
}

/// Events that the run has not received yet, and the charges that it has.
#[derive(Default)]
struct GateEventQueue {
    events: Vec<GateEvent>,
    /// Allowances are relative to this cost: the run does not know about later charges.
    reported_cost: Usd,
    reported_tokens: u64,
}

impl RunGate {
    /// Creates the listener for a gate that is about to be created.
    pub fn new(records: EgressLog, meter: Arc<CostMeter>) -> Arc<Self> {
        let events = Mutex::default();
        Arc::new(Self {
            listener: Arc::new(GateListener {
                events,
                records,
                refusals: AtomicU32::new(0),
                failure: Mutex::default(),
                command: Mutex::default(),
                counters: OnceLock::new(),
                telemetry: Arc::default(),
            }),
            meter,
            port: OnceLock::new(),
            gate: OnceLock::new(),
        })
    }

    /// Returns the listener of the gate.
    pub fn sink(&self) -> Arc<dyn GateSink> {
        self.listener.clone()
    }

    /// Counts the decisions of the gate.
    pub fn count_decisions(&self, counters: Arc<WorkCounters>) {
        if self.listener.counters.set(counters).is_err() {
            tracing::warn!("the counters of a gate were set twice");
        }
    }

    /// Returns the receiver of the agent's telemetry.
    pub fn telemetry(&self) -> Arc<AgentTelemetry> {
        self.listener.telemetry.clone()
    }

    /// Sets the gate. It is set only once.
    pub fn set_gate(&self, gate: Gate) {
        if self.gate.set(gate).is_err() {
            tracing::warn!("the gate of a run was set twice");
        }
    }

    /// Sets the port, which stays open until this is dropped. It is set only once.
    pub fn set_port(&self, port: CredentialPort) {
        if self.port.set(port).is_err() {
            tracing::warn!("the credential port of a run was set twice");
        }
    }
}

impl Drop for RunGate {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.get() {
            gate.close();
        }
        self.listener.records.flush();
    }
}

impl GateListener {
    /// Detects that the provider refuses the credential every time.
    fn count_refusals(&self, status: u16) {
        if status != 401 {
            self.refusals.store(0, Ordering::Relaxed);
        } else if self.refusals.fetch_add(1, Ordering::Relaxed) + 1 == MAX_REFUSALS {
            self.push_event(GateEvent::Refused { status });
        }
    }

    fn record_failure(&self, record: &GateAuditRecord) {
        let Some(status) = record.status else {
            return;
        };
        let unavailable = |why| Some(ProviderFailure::Unavailable { why });
        let failure = match (record.decision.reason, status) {
            (EgressReason::CredentialRoute, 408 | 425 | 500..=599) => {
                unavailable(format!("status {status}"))
            }
            (EgressReason::CredentialRoute, _) => None,
            (EgressReason::Unreachable, _) => {
                unavailable(format!("`{}` cannot be reached", record.host))
            }
            (EgressReason::UntrustedCertificate, _) => Some(ProviderFailure::Untrusted {
                host: record.host.clone(),
            }),
            // The gate refused the request without asking the provider.
            (_, _) => return,
        };
        self.set_failure(failure);
    }

    fn set_failure(&self, failure: Option<ProviderFailure>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    fn command(&self) -> Option<String> {
        let command = self.command.lock();
        command.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push_event(&self, event: GateEvent) {
        let mut queue = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        queue.events.push(event);
    }
}

impl GateSink for GateListener {
    fn record_audit(&self, record: GateAuditRecord) {
        self.records.add(&record, self.command().as_deref());
        if let Some(counters) = self.counters.get() {
            counters.count_decision(record.decision);
        }
        if record.listener == SandboxListener::Credentials {
            self.record_failure(&record);
        }
        if let (SandboxListener::Credentials, true, Some(status)) =
            (record.listener, record.decision.is_allowed(), record.status)
        {
            self.count_refusals(status);
        }
    }

    fn record_blocked_host(&self, notice: BlockedHostNotice) {
        self.push_event(GateEvent::Blocked {
            host: notice.host.to_string(),
            port: notice.port,
            reason: notice.reason.to_string(),
            command: self.command(),
        });
    }

    fn record_provider_tool(&self, provider: &Endpoint, found: &ProviderToolUse) {
        self.push_event(GateEvent::ProviderTool {
            provider: provider.host.to_string(),
            what: found.what.clone(),
            tool: found.kind,
            action: found.action,
        });
    }

    fn record_charge(&self, charge: Charge) {
        self.push_event(GateEvent::Charged {
            model: charge.model,
            usage: charge.usage,
            cost_usd: charge.cost,
        });
    }
}

impl GateControl for RunGate {
    fn drain_events(&self) -> Vec<GateEvent> {
        let queue = self.listener.events.lock();
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let mut events = std::mem::take(&mut queue.events);
        for event in &events {
            if let GateEvent::Charged {
                usage, cost_usd, ..
            } = event
            {
                queue.reported_cost += *cost_usd;
                queue.reported_tokens = queue.reported_tokens.saturating_add(usage.total());
            }
        }
        let further = self.gate.get().and_then(Gate::further_blocked);
        events.extend(further.map(|further| GateEvent::FurtherBlocked {
            count: further.count,
            examples: further.examples.iter().map(Host::to_string).collect(),
        }));
        events
    }

    fn set_allowance(&self, allowance: Allowance) {
        self.listener.refusals.store(0, Ordering::Relaxed);
        self.listener.set_failure(None);
        let queue = self.listener.events.lock();
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        self.meter.set_budgets(&Budgets {
            max_cost: allowance.cost.map(|more| queue.reported_cost + more),
            max_tokens: allowance
                .tokens
                .map(|more| queue.reported_tokens.saturating_add(more)),
            ..Budgets::default()
        });
    }

    fn is_metered(&self) -> bool {
        self.gate
            .get()
            .is_some_and(|gate| gate.routes().iter().any(Route::is_metered))
    }

    fn has_unsettled_calls(&self) -> bool {
        self.meter.open_calls() > 0
    }

    fn settle_open_calls(&self) {
        self.meter.stop_background_reads();
    }

    fn exhausted_budget(&self) -> Option<Budget> {
        self.meter.insufficient_budget()
    }

    fn provider_failure(&self) -> Option<ProviderFailure> {
        let failure = self.listener.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn drain_telemetry(&self) -> Option<AgentMeasurements> {
        self.listener.telemetry.drain()
    }

    fn set_running_command(&self, command: Option<&str>) {
        let label = command.map(|command| command.chars().take(MAX_COMMAND_CHARS).collect());
        let now = self.listener.command.lock();
        *now.unwrap_or_else(PoisonError::into_inner) = label;
    }

    fn allow_host(&self, host: &str) -> Result<(), String> {
        let entry = AllowlistEntry::parse(host).map_err(|error| error.to_string())?;
        let Some(gate) = self.gate.get() else {
            return Ok(());
        };
        if let Some(why) = gate.permanent_refusal(&entry) {
            return Err(why);
        }
        gate.allow(entry);
        Ok(())
    }

    fn set_setup_hosts(&self, hosts: &[String]) {
        let Some(gate) = self.gate.get() else {
            return;
        };
        let mut allowed = Allowlist::default();
        for host in hosts {
            match AllowlistEntry::parse(host) {
                // A host with a credential of the run stays reachable through its port only.
                Ok(entry) if gate.permanent_refusal(&entry).is_none() => allowed.add(entry),
                Ok(_) => tracing::warn!("`{host}` cannot be reached during set-up"),
                Err(error) => tracing::warn!(%error, "`{host}` cannot be reached during set-up"),
            }
        }
        gate.set_setup_hosts(allowed);
    }

    fn reset_blocked_host(&self, host: &str) {
        if let (Some(gate), Ok(host)) = (self.gate.get(), Host::parse(host)) {
            gate.forget_announcement(&host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use ralph_core::budget::Spent;
    use ralph_core::id::RunId;
    use ralph_core::net::{EgressDecider, EgressDecision};
    use ralph_core::ports::TokenUsage;
    use ralph_core::secret::Redactor;
    use ralph_gate::{MeterRates, SandboxIdentity};

    fn audit(reason: EgressReason, status: u16) -> GateAuditRecord {
        GateAuditRecord {
            at: Timestamp::UNIX_EPOCH,
            identity: SandboxIdentity {
                run: RunId::parse("run-1").unwrap(),
                sandbox: "docker".to_owned(),
            },
            listener: SandboxListener::Credentials,
            host: "api.example".to_owned(),
            port: 443,
            request: None,
            detail: None,
            decision: if reason == EgressReason::CredentialRoute {
                EgressDecision::allowed(reason, EgressDecider::Credential)
            } else {
                EgressDecision::denied(reason, EgressDecider::Gate)
            },
            status: Some(status),
            bytes_out: 0,
            bytes_in: 0,
            duration_ms: 0,
        }
    }

    #[test]
    fn the_last_response_decides_whether_the_provider_is_available() {
        let dir = tempfile::tempdir().unwrap();
        let records = EgressLog::new(dir.path().join("egress.jsonl"), Redactor::new(Vec::new()));
        let clock = Arc::new(crate::clock::SystemClock::new());
        let meter = CostMeter::new(
            &Budgets::default(),
            Spent::default(),
            MeterRates::default(),
            clock,
        );
        let run_gate = RunGate::new(records, meter);
        let unavailable = |why: &str| Some(ProviderFailure::Unavailable { why: why.into() });
        let untrusted = Some(ProviderFailure::Untrusted {
            host: "api.example".into(),
        });
        for (reason, status, expected) in [
            (
                EgressReason::CredentialRoute,
                529,
                unavailable("status 529"),
            ),
            // Refusals by the gate say nothing about the provider.
            (EgressReason::BudgetSpent, 402, unavailable("status 529")),
            (EgressReason::CredentialRoute, 200, None),
            (
                EgressReason::Unreachable,
                502,
                unavailable("`api.example` cannot be reached"),
            ),
            (EgressReason::CredentialRoute, 400, None),
            (EgressReason::UntrustedCertificate, 502, untrusted),
        ] {
            run_gate.sink().record_audit(audit(reason, status));
            assert_eq!(run_gate.provider_failure(), expected, "{reason} {status}");
        }
        run_gate.set_allowance(Allowance::zero());
        assert_eq!(run_gate.provider_failure(), None);
    }

    #[test]
    fn an_allowance_is_relative_to_reported_charges() {
        let dir = tempfile::tempdir().unwrap();
        let records = EgressLog::new(dir.path().join("egress.jsonl"), Redactor::new(Vec::new()));
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        let spent = Spent {
            cost: usd(0.5),
            ..Spent::default()
        };
        let budgets = Budgets::default();
        let clock = Arc::new(crate::clock::SystemClock::new());
        let meter = CostMeter::new(&budgets, spent, MeterRates::default(), clock);
        let run_gate = RunGate::new(records, meter.clone());
        run_gate.sink().record_charge(Charge {
            at: Timestamp::UNIX_EPOCH,
            model: "m".into(),
            usage: TokenUsage::default(),
            cost: usd(0.5),
            is_estimate: false,
        });
        // The run computed this allowance without the unreported charge.
        let allowance = Allowance {
            cost: Some(usd(0.4)),
            tokens: None,
        };
        run_gate.set_allowance(allowance);
        assert_eq!(meter.exhausted(), Some(Budget::Cost));
        assert_eq!(run_gate.drain_events().len(), 1);
        run_gate.set_allowance(allowance);
        assert_eq!(meter.exhausted(), None);
    }
}
