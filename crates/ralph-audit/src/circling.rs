//! GUT: a score is the sum of its signals, a gutter is recorded, and the ladder is climbed rung by
//! rung.

use serde_json::Value;

use super::evidence::Evidence;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

/// The weight of each signal, in tenths.
const WEIGHTS: [(&str, i64); 14] = [
    ("repeated_failure", 5),
    ("stagnation", 3),
    ("file_thrash", 2),
    ("idle", 4),
    ("tests_closer", -5),
    ("same_problem", 4),
    ("rewriting", 3),
    ("growing_diff", 3),
    ("cycle", 7),
    ("reformatting", 5),
    ("reading", 4),
    ("no_progress", 7),
    ("moved_on", -5),
    ("recent_progress", -5),
];
/// The score at which a gutter is recorded, in tenths.
const GUTTER_THRESHOLD: i64 = 7;
/// The rungs, from the bottom up.
const RUNGS: [&str; 4] = ["rotate", "fallback", "doctor", "pause"];

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    let mut walk = CirclingCheck::default();
    for record in &evidence.journal.records {
        walk.apply(record, &mut findings);
    }
    if walk.measured == 0 {
        return AuditOutcome::NotApplicable("no iteration was measured");
    }
    AuditOutcome::Checked(findings)
}

#[derive(Default)]
struct CirclingCheck {
    measured: usize,
    consecutive: u64,
    rung: Option<usize>,
    /// The iteration whose gutter has not been recorded yet.
    unreported: Option<u64>,
}

impl CirclingCheck {
    fn apply(&mut self, record: &AuditRecord, findings: &mut Findings) {
        match record.kind() {
            "iteration_finished" => self.check_measurement(record, findings),
            "gutter" => {
                let iteration = record.event_u64("iteration");
                if self.unreported.take() != iteration {
                    findings.fail(format!(
                        "{}: no finished iteration has this gutter",
                        record.describe()
                    ));
                }
            }
            // A crash may have happened between the two records.
            "run_opened" => self.unreported = None,
            "iteration_started" => {
                if let Some(iteration) = self.unreported.take() {
                    findings.fail(format!(
                        "the gutter of iteration {iteration} was not recorded"
                    ));
                }
            }
            _ => {}
        }
    }

    fn check_measurement(&mut self, record: &AuditRecord, findings: &mut Findings) {
        let metrics = &record.event()["metrics"];
        let report = &metrics["gutter"];
        if report.is_null() {
            return;
        }
        self.measured += 1;
        let recorded = metrics["loop_score"].as_f64().map(to_tenths);
        let sum = signal_sum(report).clamp(0, 10);
        if recorded != Some(sum) {
            findings.fail(format!(
                "{}: its signals add up to {sum} tenths, but its `loop_score` is {}",
                record.describe(),
                metrics["loop_score"]
            ));
        }
        if report["step"].is_object() {
            self.unreported = record.event_u64("iteration");
        }
        self.check_ladder(report, sum, record, findings);
    }

    fn check_ladder(
        &mut self,
        report: &Value,
        sum: i64,
        record: &AuditRecord,
        findings: &mut Findings,
    ) {
        let ladder = &report["ladder"];
        let consecutive = ladder["consecutive"].as_u64().unwrap_or_default();
        let rung = ladder["rung"].as_str();
        let rung = rung.and_then(|rung| RUNGS.iter().position(|known| *known == rung));
        let stays = consecutive == self.consecutive && rung == self.rung;
        let goes_up =
            consecutive == self.consecutive + 1 && rung >= self.rung && sum >= GUTTER_THRESHOLD;
        if !(consecutive == 0 || stays || goes_up) {
            findings.fail(format!(
                "{}: the ladder goes from {} gutters in a row to {consecutive}",
                record.describe(),
                self.consecutive
            ));
        }
        if report["step"].is_object() && sum < GUTTER_THRESHOLD {
            findings.fail(format!("{}: a step without a gutter", record.describe()));
        }
        (self.consecutive, self.rung) = (consecutive, rung);
    }
}

fn signal_sum(report: &Value) -> i64 {
    let signals = report["signals"].as_array();
    let signals = signals.into_iter().flatten();
    signals
        .filter_map(|signal| {
            let name = signal["signal"].as_str()?;
            WEIGHTS.iter().find(|(known, _)| *known == name)
        })
        .map(|(_, weight)| weight)
        .sum()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast from a float saturates, and a score has few tenths"
)]
fn to_tenths(score: f64) -> i64 {
    (score * 10.0).round() as i64
}
