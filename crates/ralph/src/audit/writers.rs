//! I13: one process writes at a time, and a process that lost the run writes no more.

use super::evidence::Evidence;
use super::report::{Findings, Outcome};

pub(super) fn check(evidence: &Evidence<'_>) -> Outcome {
    let mut findings = Findings::default();
    let mut current = 0;
    for record in &evidence.journal.records {
        let Some(epoch) = record.stamp("epoch") else {
            findings.fail(format!("{} has no `epoch`", record.name()));
            continue;
        };
        if record.kind() != "run_opened" {
            if epoch != current {
                findings.fail(format!(
                    "{} was written in epoch {epoch}, but epoch {current} had the run",
                    record.name()
                ));
            }
            continue;
        }
        if record.count("epoch") != Some(epoch) {
            findings.fail(format!(
                "{} names another epoch than its own",
                record.name()
            ));
        }
        if epoch <= current {
            findings.fail(format!(
                "{} opens epoch {epoch}, but epoch {current} was opened before",
                record.name()
            ));
        }
        current = current.max(epoch);
    }
    Outcome::Checked(findings)
}
