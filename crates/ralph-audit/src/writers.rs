//! I13: one process writes at a time, and a process that lost the run stops writing.

use super::evidence::Evidence;
use super::report::{AuditOutcome, Findings};

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    let mut current = 0;
    for record in &evidence.journal.records {
        let Some(epoch) = record.frame_u64("epoch") else {
            findings.fail(format!("{} has no `epoch`", record.describe()));
            continue;
        };
        if record.kind() != "run_opened" {
            if epoch != current {
                findings.fail(format!(
                    "{} was written in epoch {epoch}, but epoch {current} owned the run",
                    record.describe()
                ));
            }
            continue;
        }
        if record.event_u64("epoch") != Some(epoch) {
            findings.fail(format!(
                "{} names another epoch than its own",
                record.describe()
            ));
        }
        if epoch <= current {
            findings.fail(format!(
                "{} opens epoch {epoch}, but epoch {current} was opened earlier",
                record.describe()
            ));
        }
        current = current.max(epoch);
    }
    AuditOutcome::Checked(findings)
}
