//! Adds up the work of this process: iterations, model calls, tokens, cost, ends of runs, and decisions of gates.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ralph_core::event::{
    AgentSessionEvent, Event, IterationEvent, IterationOutcome, JournalRecord, ModelEvent, RunEvent,
};
use ralph_core::money::Usd;
use ralph_core::net::EgressDecision;
use ralph_core::ports::TokenUsage;

use super::metric::{HistogramValue, MetricFamily, MetricKind, MetricSample, MetricValue};

/// The bounds of durations of iterations and model calls, in seconds.
const DURATIONS: &[f64] = &[0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0];

/// The counters of this process.
#[derive(Debug, Default)]
pub struct WorkCounters {
    counts: Mutex<WorkCounts>,
}

#[derive(Debug, Clone)]
struct WorkCounts {
    iterations: BTreeMap<&'static str, u64>,
    /// By status; a run that waits or ends counts each time.
    statuses: BTreeMap<&'static str, u64>,
    model_calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost: Usd,
    /// By decision and reason.
    gate: BTreeMap<(&'static str, &'static str), u64>,
    iteration_seconds: HistogramValue,
    model_seconds: HistogramValue,
}

impl Default for WorkCounts {
    fn default() -> Self {
        Self {
            iterations: BTreeMap::new(),
            statuses: BTreeMap::new(),
            model_calls: 0,
            input_tokens: 0,
            output_tokens: 0,
            cached_tokens: 0,
            cost: Usd::ZERO,
            gate: BTreeMap::new(),
            iteration_seconds: HistogramValue::new(DURATIONS),
            model_seconds: HistogramValue::new(DURATIONS),
        }
    }
}

impl WorkCounters {
    fn lock(&self) -> MutexGuard<'_, WorkCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new record of a journal.
    pub fn count_record(&self, record: &JournalRecord) {
        match &record.event {
            Event::Iteration(IterationEvent::IterationFinished {
                outcome, metrics, ..
            }) => {
                let mut counts = self.lock();
                *counts.iterations.entry(outcome_name(outcome)).or_default() += 1;
                counts
                    .iteration_seconds
                    .observe(seconds(metrics.duration_ms));
            }
            Event::Model(ModelEvent::ModelReplied {
                usage,
                cost_usd,
                duration_ms,
                ..
            }) => {
                let mut counts = self.lock();
                counts.charge(usage, *cost_usd);
                counts.model_seconds.observe(seconds(*duration_ms));
            }
            Event::Model(ModelEvent::ModelAbandoned {
                usage, cost_usd, ..
            })
            | Event::Agent(AgentSessionEvent::AgentCharged {
                usage, cost_usd, ..
            }) => self.lock().charge(usage, *cost_usd),
            Event::Run(RunEvent::StatusChanged { status }) => {
                *self.lock().statuses.entry(status.as_str()).or_default() += 1;
            }
            Event::Run(_)
            | Event::Command(_)
            | Event::Sandbox(_)
            | Event::Iteration(_)
            | Event::Model(_)
            | Event::Agent(_)
            | Event::Egress(_)
            | Event::Verification(_)
            | Event::Delivery(_)
            | Event::Doctor(_) => {}
        }
    }

    /// Counts a decision of a gate.
    pub fn count_decision(&self, decision: EgressDecision) {
        let verdict = if decision.is_allowed() {
            "allowed"
        } else {
            "denied"
        };
        let key = (verdict, decision.reason.code());
        *self.lock().gate.entry(key).or_default() += 1;
    }

    /// Returns the current values.
    pub fn families(&self) -> Vec<MetricFamily> {
        let counts = self.lock().clone();
        let by = |label, values: &BTreeMap<&'static str, u64>| {
            let samples = values.iter();
            samples
                .map(|(name, count)| sample(vec![(label, (*name).to_owned())], *count))
                .collect()
        };
        let tokens = [
            ("input", counts.input_tokens),
            ("output", counts.output_tokens),
            ("cached", counts.cached_tokens),
        ];
        let gate = counts.gate.iter().map(|((decision, reason), count)| {
            let labels = vec![
                ("decision", (*decision).to_owned()),
                ("reason", (*reason).to_owned()),
            ];
            sample(labels, *count)
        });
        vec![
            family(
                "ralph_iterations",
                "Finished iterations",
                by("outcome", &counts.iterations),
            ),
            family(
                "ralph_status_changes",
                "Changes of the status of runs",
                by("status", &counts.statuses),
            ),
            family(
                "ralph_model_calls",
                "Charged model calls",
                vec![sample(Vec::new(), counts.model_calls)],
            ),
            family(
                "ralph_tokens",
                "Tokens of charged model calls; `cached` is part of `input`",
                tokens
                    .map(|(kind, count)| sample(vec![("kind", kind.to_owned())], count))
                    .into(),
            ),
            MetricFamily::number(
                "ralph_cost_usd",
                "Cost of charged model calls in dollars",
                MetricKind::Counter,
                counts.cost.dollars(),
            ),
            family("ralph_gate_decisions", "Decisions of gates", gate.collect()),
            histogram(
                "ralph_iteration_duration_seconds",
                "Duration of finished iterations",
                counts.iteration_seconds,
            ),
            histogram(
                "ralph_model_call_duration_seconds",
                "Duration of model calls with a reply",
                counts.model_seconds,
            ),
        ]
    }
}

impl WorkCounts {
    fn charge(&mut self, usage: &TokenUsage, cost: Usd) {
        self.model_calls += 1;
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cache_read_tokens);
        self.cost += cost;
    }
}

fn family(name: &'static str, help: &'static str, samples: Vec<MetricSample>) -> MetricFamily {
    MetricFamily {
        name,
        help,
        kind: MetricKind::Counter,
        samples,
    }
}

fn histogram(name: &'static str, help: &'static str, value: HistogramValue) -> MetricFamily {
    MetricFamily {
        name,
        help,
        kind: MetricKind::Histogram,
        samples: vec![MetricSample {
            labels: Vec::new(),
            value: MetricValue::Histogram(value),
        }],
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating-point numbers"
)]
fn sample(labels: Vec<(&'static str, String)>, count: u64) -> MetricSample {
    MetricSample {
        labels,
        value: MetricValue::Number(count as f64),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floating-point numbers"
)]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// Returns the name of an outcome, as in the journal.
pub(super) fn outcome_name(outcome: &IterationOutcome) -> &'static str {
    match outcome {
        IterationOutcome::Completed => "completed",
        IterationOutcome::ActionFailed { .. } => "action_failed",
        IterationOutcome::Unreadable => "unreadable",
        IterationOutcome::Rotated => "rotated",
        IterationOutcome::Paused => "paused",
        IterationOutcome::StopRequested => "stop_requested",
        IterationOutcome::GaveUp => "gave_up",
        IterationOutcome::OutOfBudget => "out_of_budget",
        IterationOutcome::SandboxLost => "sandbox_lost",
        IterationOutcome::AgentStopped { .. } => "agent_stopped",
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::net::{EgressDecider, EgressReason};

    use super::*;

    #[test]
    fn decisions_are_counted_by_reason() {
        let counters = WorkCounters::default();
        let denied = EgressDecision::denied(EgressReason::BlockedByPolicy, EgressDecider::Policy);
        let allowed = EgressDecision::allowed(EgressReason::Listed, EgressDecider::Policy);
        for decision in [denied, allowed, denied] {
            counters.count_decision(decision);
        }
        let families = counters.families();
        let gate = families.iter().find(|f| f.name == "ralph_gate_decisions");
        let values: Vec<_> = gate.unwrap().samples.iter().map(|s| &s.value).collect();
        assert_eq!(
            values,
            [&MetricValue::Number(1.0), &MetricValue::Number(2.0)]
        );
    }
}
