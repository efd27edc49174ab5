//! What a run knows of its gate.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ralph_core::budget::{Budget, Limits as Budgets};
use ralph_core::money::Usd;
use ralph_core::net::{Endpoint, Entry, Host, Reason};
use ralph_core::ports::{Allowance, GateNews, Gatekeeper, ProviderFailure};
use ralph_gate::{Audit, Blocked, Charge, Gate, Listener, Meter, ProviderToolUse, Sink};

use super::port::Port;
use super::records::Records;

/// How much of a command is told, in characters.
const MOST_COMMAND: usize = 200;

/// So many refusals in a row are not an accident: an agent would try for minutes.
const MOST_REFUSALS: u32 = 3;

/// What a run knows of its gate, and tells it. When it is dropped, the run has ended: the gate is
/// closed.
pub struct Keeper {
    heard: Arc<Heard>,
    meter: Arc<Meter>,
    /// The port on this machine that leads to it, if it has one.
    port: OnceLock<Port>,
    /// The gate, once it is made: it needs somebody who listens before.
    gate: OnceLock<Gate>,
}

/// Listens to a gate. It is not the keeper itself, because a gate has to end with its keeper.
struct Heard {
    news: Mutex<Waiting>,
    records: Records,
    /// How often in a row the provider has refused the credential.
    refusals: AtomicU32,
    /// How the last call to the provider failed.
    failure: Mutex<Option<ProviderFailure>>,
    /// What runs in the sandbox.
    command: Mutex<Option<String>>,
}

/// News that the run has not taken yet, and the charges that it has.
#[derive(Default)]
struct Waiting {
    news: Vec<GateNews>,
    /// Allowances are relative to this: the run does not know about later charges.
    taken_cost: Usd,
    taken_tokens: u64,
}

impl Keeper {
    /// Listens to a gate that is about to be made.
    pub fn new(records: Records, meter: Arc<Meter>) -> Arc<Self> {
        let news = Mutex::default();
        Arc::new(Self {
            heard: Arc::new(Heard {
                news,
                records,
                refusals: AtomicU32::new(0),
                failure: Mutex::default(),
                command: Mutex::default(),
            }),
            meter,
            port: OnceLock::new(),
            gate: OnceLock::new(),
        })
    }

    /// Returns who listens to the gate.
    pub fn sink(&self) -> Arc<dyn Sink> {
        self.heard.clone()
    }

    /// Takes the gate that it listens to. There is only one.
    pub fn keep(&self, gate: Gate) {
        self.gate.set(gate).ok();
    }

    /// Keeps a port open for as long as the gate is.
    pub fn hold(&self, port: Port) {
        self.port.set(port).ok();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.get() {
            gate.close();
        }
        self.heard.records.flush();
    }
}

impl Heard {
    /// Notices when the provider refuses the credential every time.
    fn count(&self, status: u16) {
        if status != 401 {
            self.refusals.store(0, Ordering::Relaxed);
        } else if self.refusals.fetch_add(1, Ordering::Relaxed) + 1 == MOST_REFUSALS {
            self.tell(GateNews::Refused { status });
        }
    }

    fn note_failure(&self, record: &Audit) {
        let Some(status) = record.status else {
            return;
        };
        let unavailable = |why| Some(ProviderFailure::Unavailable { why });
        let failure = match (record.decision.reason, status) {
            (Reason::CredentialRoute, 408 | 425 | 500..=599) => {
                unavailable(format!("status {status}"))
            }
            (Reason::CredentialRoute, _) => None,
            (Reason::Unreachable, _) => unavailable(format!("`{}` cannot be reached", record.host)),
            (Reason::UntrustedCertificate, _) => Some(ProviderFailure::Untrusted {
                host: record.host.clone(),
            }),
            // The gate refused the request by itself.
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

    fn tell(&self, news: GateNews) {
        let mut waiting = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.news.push(news);
    }
}

impl Sink for Heard {
    fn audit(&self, record: Audit) {
        self.records.add(&record, self.command().as_deref());
        if record.listener == Listener::Credentials {
            self.note_failure(&record);
        }
        if let (Listener::Credentials, true, Some(status)) =
            (record.listener, record.decision.is_allowed(), record.status)
        {
            self.count(status);
        }
    }

    fn blocked(&self, notice: Blocked) {
        self.tell(GateNews::Blocked {
            host: notice.host.to_string(),
            port: notice.port,
            reason: notice.reason.to_string(),
            command: self.command(),
        });
    }

    fn provider_tool(&self, provider: &Endpoint, found: &ProviderToolUse) {
        self.tell(GateNews::ProviderTool {
            provider: provider.host.to_string(),
            what: found.what.clone(),
            tool: found.kind,
            action: found.action,
        });
    }

    fn charged(&self, charge: Charge) {
        self.tell(GateNews::Charged {
            model: charge.model,
            usage: charge.usage,
            cost_usd: charge.cost,
        });
    }
}

impl Gatekeeper for Keeper {
    fn news(&self) -> Vec<GateNews> {
        let waiting = self.heard.news.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let mut news = std::mem::take(&mut waiting.news);
        for one in &news {
            if let GateNews::Charged {
                usage, cost_usd, ..
            } = one
            {
                waiting.taken_cost += *cost_usd;
                waiting.taken_tokens = waiting.taken_tokens.saturating_add(usage.total());
            }
        }
        let further = self.gate.get().and_then(Gate::further_blocked);
        news.extend(further.map(|further| GateNews::FurtherBlocked {
            count: further.count,
            examples: further.examples.iter().map(Host::to_string).collect(),
        }));
        news
    }

    fn allow_spending(&self, allowance: Allowance) {
        self.heard.refusals.store(0, Ordering::Relaxed);
        self.heard.set_failure(None);
        let waiting = self.heard.news.lock();
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        self.meter.set_budgets(&Budgets {
            max_cost: allowance.cost.map(|more| waiting.taken_cost + more),
            max_tokens: allowance
                .tokens
                .map(|more| waiting.taken_tokens.saturating_add(more)),
            ..Budgets::default()
        });
    }

    fn meters(&self) -> bool {
        self.gate
            .get()
            .is_some_and(|gate| !gate.routes().is_empty())
    }

    fn owes(&self) -> bool {
        self.meter.open_calls() > 0
    }

    fn settle_open_calls(&self) {
        self.meter.stop_reading_on();
    }

    fn short_of(&self) -> Option<Budget> {
        self.meter.short_of()
    }

    fn provider_failure(&self) -> Option<ProviderFailure> {
        let failure = self.heard.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn notice_command(&self, command: Option<&str>) {
        let label = command.map(|command| command.chars().take(MOST_COMMAND).collect());
        let now = self.heard.command.lock();
        *now.unwrap_or_else(PoisonError::into_inner) = label;
    }

    fn allow_host(&self, host: &str) -> Result<(), String> {
        let entry = Entry::parse(host).map_err(|error| error.to_string())?;
        let Some(gate) = self.gate.get() else {
            return Ok(());
        };
        if let Some(why) = gate.refuses_always(&entry) {
            return Err(why);
        }
        gate.allow(entry);
        Ok(())
    }

    fn forget_host(&self, host: &str) {
        if let (Some(gate), Ok(host)) = (self.gate.get(), Host::parse(host)) {
            gate.forget(&host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use ralph_core::budget::Spent;
    use ralph_core::id::RunId;
    use ralph_core::net::{Decider, Decision};
    use ralph_core::ports::Usage;
    use ralph_core::secret::Redactor;
    use ralph_gate::{Identity, Rates};

    fn audit(reason: Reason, status: u16) -> Audit {
        Audit {
            at: Timestamp::UNIX_EPOCH,
            identity: Identity {
                run: RunId::parse("run-1").unwrap(),
                sandbox: "docker".to_owned(),
            },
            listener: Listener::Credentials,
            host: "api.example".to_owned(),
            port: 443,
            request: None,
            detail: None,
            decision: if reason == Reason::CredentialRoute {
                Decision::allowed(reason, Decider::Credential)
            } else {
                Decision::denied(reason, Decider::Gate)
            },
            status: Some(status),
            bytes_out: 0,
            bytes_in: 0,
            duration_ms: 0,
        }
    }

    #[test]
    fn the_last_answer_says_whether_the_provider_is_available() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::at(dir.path().join("egress.jsonl"), Redactor::new(Vec::new()));
        let clock = Arc::new(crate::clock::SystemClock::start());
        let meter = Meter::new(
            &Budgets::default(),
            Spent::default(),
            Rates::default(),
            clock,
        );
        let keeper = Keeper::new(records, meter);
        let unavailable = |why: &str| Some(ProviderFailure::Unavailable { why: why.into() });
        let untrusted = Some(ProviderFailure::Untrusted {
            host: "api.example".into(),
        });
        for (reason, status, expected) in [
            (Reason::CredentialRoute, 529, unavailable("status 529")),
            // The gate's own refusals say nothing about the provider.
            (Reason::BudgetSpent, 402, unavailable("status 529")),
            (Reason::CredentialRoute, 200, None),
            (
                Reason::Unreachable,
                502,
                unavailable("`api.example` cannot be reached"),
            ),
            (Reason::CredentialRoute, 400, None),
            (Reason::UntrustedCertificate, 502, untrusted),
        ] {
            keeper.sink().audit(audit(reason, status));
            assert_eq!(keeper.provider_failure(), expected, "{reason} {status}");
        }
        keeper.allow_spending(Allowance::none());
        assert_eq!(keeper.provider_failure(), None);
    }

    #[test]
    fn an_allowance_counts_from_the_charges_that_the_run_knows() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::at(dir.path().join("egress.jsonl"), Redactor::new(Vec::new()));
        let usd = |dollars| Usd::from_dollars(dollars).unwrap();
        let spent = Spent {
            cost: usd(0.5),
            ..Spent::default()
        };
        let budgets = Budgets::default();
        let clock = Arc::new(crate::clock::SystemClock::start());
        let meter = Meter::new(&budgets, spent, Rates::default(), clock);
        let keeper = Keeper::new(records, meter.clone());
        keeper.sink().charged(Charge {
            at: Timestamp::UNIX_EPOCH,
            model: "m".into(),
            usage: Usage::default(),
            cost: usd(0.5),
            is_estimate: false,
        });
        // The run computed this without the charge that it has not heard of.
        let allowance = Allowance {
            cost: Some(usd(0.4)),
            tokens: None,
        };
        keeper.allow_spending(allowance);
        assert_eq!(meter.exhausted(), Some(Budget::Cost));
        assert_eq!(keeper.news().len(), 1);
        keeper.allow_spending(allowance);
        assert_eq!(meter.exhausted(), None);
    }
}
