//! I6: nothing was started that a budget forbids, and active time never decreased.

use std::fs;
use std::str::FromStr;

use serde_json::Value;

use super::evidence::Evidence;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};
use super::task;

/// The tolerance after the end of a run's time, in milliseconds: running work has to end first.
const GRACE_MS: u64 = 15_000;

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let budgets = BudgetHistory::read(evidence);
    let mut findings = Findings::default();
    check_iterations(evidence, &budgets, &mut findings);
    check_calls(evidence, &budgets, &mut findings);
    check_active_time(evidence, &budgets, &mut findings);
    AuditOutcome::Checked(findings)
}

/// The spending limits of a run; `None` means no limit.
#[derive(Debug, Clone)]
struct AuditLimits {
    iterations: Option<u64>,
    active_ms: Option<u64>,
    nanodollars: Option<u64>,
    tokens: Option<u64>,
}

/// The effective limits, each from a record number on: the user may raise and lower them.
struct BudgetHistory(Vec<(u64, AuditLimits)>);

impl BudgetHistory {
    fn read(evidence: &Evidence<'_>) -> Self {
        let planned = AuditLimits::from_json(&evidence.plan()["limits"]);
        let mut limits = vec![(0, planned.clone())];
        let records = evidence.journal.records.iter();
        let is_change =
            |record: &&AuditRecord| matches!(record.kind(), "contract_changed" | "limits_changed");
        for change in records.filter(is_change) {
            let changed = &change.event()["limits"];
            let now = if changed.is_object() {
                AuditLimits::from_json(changed)
            } else {
                planned.raised_by_task_file(evidence)
            };
            limits.push((change.number, now));
        }
        Self(limits)
    }

    fn at(&self, record: &AuditRecord) -> &AuditLimits {
        let in_force = self.0.iter().rfind(|(from, _)| *from <= record.number);
        // The planned limits apply from the start.
        &in_force.unwrap_or(&self.0[0]).1
    }
}

impl AuditLimits {
    fn from_json(limits: &Value) -> Self {
        let wall = &limits["max_wall_time"];
        let millis = |secs: u64| secs * 1000 + wall["nanos"].as_u64().unwrap_or(0) / 1_000_000;
        Self {
            iterations: limits["max_iterations"].as_u64(),
            active_ms: wall["secs"].as_u64().map(millis),
            nanodollars: limits["max_cost"].as_f64().map(to_nanodollars),
            tokens: limits["max_tokens"].as_u64(),
        }
    }

    /// Returns the higher of the planned limits and those of the task file, for a change that does
    /// not record its limits. A limit that the plan or the file lacks is not checked.
    fn raised_by_task_file(&self, evidence: &Evidence<'_>) -> Self {
        // Without the file, the limits are unknown.
        let text = fs::read(evidence.run_dir.join("ralph_task.md"))
            .map_or_else(|_| String::new(), |bytes| task::normalize(&bytes));
        let current = |key: &str| task::front_matter_value(&text, key);
        let higher = |planned: Option<u64>, current: Option<u64>| Some(planned?.max(current?));
        let count = |key: &str| parse_limit(current(key)?);
        let dollars = || parse_limit(current("max_cost_usd_estimate")?);
        let minutes = || u64::checked_mul(count("max_wall_time_minutes")?, 60_000);
        Self {
            iterations: higher(self.iterations, count("max_iterations")),
            active_ms: higher(self.active_ms, minutes()),
            nanodollars: higher(self.nanodollars, dollars().map(to_nanodollars)),
            tokens: higher(self.tokens, count("max_tokens_total")),
        }
    }
}

/// Parses a limit of a task file; `None` if it is not a number.
fn parse_limit<T: FromStr>(text: &str) -> Option<T> {
    let Ok(limit) = text.parse() else {
        return None;
    };
    Some(limit)
}

/// Sums of small amounts are exact in billionths of a dollar.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates, and a negative amount counts as zero"
)]
fn to_nanodollars(dollars: f64) -> u64 {
    (dollars * 1e9).round() as u64
}

fn check_iterations(evidence: &Evidence<'_>, budgets: &BudgetHistory, findings: &mut Findings) {
    for record in evidence.records("iteration_started") {
        let Some(limit) = budgets.at(record).iterations else {
            continue;
        };
        let number = record.event_u64("iteration").unwrap_or(u64::MAX);
        if number > limit {
            findings.fail(format!(
                "{}: iteration {number} was started, but `max_iterations` is {limit}",
                record.describe()
            ));
        }
    }
}

/// A call may exceed a limit, but no further call may follow. An agent sends several calls
/// concurrently; it must not be started again.
fn check_calls(evidence: &Evidence<'_>, budgets: &BudgetHistory, findings: &mut Findings) {
    let (mut tokens, mut spent) = (0_u64, 0_u64);
    let records = evidence.journal.records.iter();
    for record in records {
        let (is_started, is_charged) = match record.kind() {
            "model_replied" | "doctor_replied" => (true, true),
            "agent_started" => (true, false),
            // The cost of a call that was started before.
            "agent_charged" | "model_abandoned" | "doctor_abandoned" => (false, true),
            _ => continue,
        };
        let limits = budgets.at(record);
        if let Some(limit) = limits.tokens.filter(|limit| is_started && tokens >= *limit) {
            findings.fail(format!(
                "{}: another call after {tokens} tokens, but `max_tokens_total` is {limit}",
                record.describe()
            ));
        }
        let most = limits.nanodollars;
        if let Some(limit) = most.filter(|limit| is_started && spent >= *limit) {
            findings.fail(format!(
                "{}: another call after {}, but `max_cost_usd_estimate` is {}",
                record.describe(),
                format_dollars(spent),
                format_dollars(limit)
            ));
        }
        if !is_charged {
            continue;
        }
        tokens = tokens.saturating_add(total_tokens(record));
        let cost = record.event()["cost_usd"].as_f64();
        spent = spent.saturating_add(cost.map_or(0, to_nanodollars));
    }
}

fn total_tokens(record: &AuditRecord) -> u64 {
    let usage = &record.event()["usage"];
    let number = |key: &str| usage[key].as_u64().unwrap_or_default();
    number("input_tokens").saturating_add(number("output_tokens"))
}

fn format_dollars(nanos: u64) -> String {
    format!("${}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn check_active_time(evidence: &Evidence<'_>, budgets: &BudgetHistory, findings: &mut Findings) {
    let mut before = 0;
    for record in &evidence.journal.records {
        let Some(active) = record.frame_u64("active_ms") else {
            findings.fail(format!("{} has no `active_ms`", record.describe()));
            continue;
        };
        if active < before {
            findings.fail(format!(
                "{}: active time went back from {before} ms to {active} ms",
                record.describe()
            ));
        }
        before = active;
        let begins = matches!(
            record.kind(),
            "iteration_started" | "model_asked" | "doctor_asked" | "agent_started"
        );
        let limit = budgets.at(record).active_ms;
        let end = limit.map(|limit| limit.saturating_add(GRACE_MS));
        if begins && end.is_some_and(|end| active > end) {
            findings.fail(format!(
                "{} was written at {active} ms, more than {GRACE_MS} ms after the end of the wall time",
                record.describe()
            ));
        }
    }
}
