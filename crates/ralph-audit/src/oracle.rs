//! Runs every check on the evidence.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::evidence::Evidence;
use super::report::{AuditCheck, AuditOutcome, AuditReport};
use super::{
    append_only, budgets, circling, commits, contract, delivered_objects, green, intents,
    iterations, orphans, pulls, recorded_files, secrets, states, writers,
};

/// The number of passes over a run that changes during the audit.
const MAX_PASSES: usize = 5;
const RETRY_DELAY: Duration = Duration::from_millis(100);

type CheckFn = fn(&Evidence<'_>) -> AuditOutcome;

const CHECKS: [(&str, &str, CheckFn); 15] = [
    ("I1", "no lost iteration", iterations::check),
    ("I2", "append-only", append_only::check),
    ("I3", "no duplicate commit", commits::check),
    ("I4", "one pull request", pulls::check),
    ("I5", "no secret in the files", secrets::check),
    ("I6", "budgets are respected", budgets::check),
    ("I7", "no orphans", orphans::check),
    ("I12", "no false green", green::check),
    ("I13", "single writer", writers::check),
    ("I14", "legal states", states::check),
    ("CON", "the contract is the pinned one", contract::check),
    ("INT", "every intent has an outcome", intents::check),
    ("GUT", "circling is measured and answered", circling::check),
    ("FIL", "the files are as recorded", recorded_files::check),
    (
        "DEL",
        "delivered commits are complete",
        delivered_objects::check,
    ),
];

/// Checks every promise about a run without changing anything.
///
/// `run_dir` is the run's directory, `state_dir` its state directory, `path_variable` the `PATH`
/// for finding git, and `secrets` are the credentials of the environment by name.
pub fn audit(
    run_dir: &Path,
    state_dir: &Path,
    path_variable: &str,
    secrets: &[(String, String)],
) -> AuditReport {
    let load = || run_checks(&Evidence::load(run_dir, state_dir, path_variable, secrets));
    let mut pass = load();
    for _ in 1..MAX_PASSES {
        // Findings about a run that changed during the audit may combine two states.
        if pass.audit.is_green() || journal_length(run_dir) == pass.journal_length {
            break;
        }
        thread::sleep(RETRY_DELAY);
        pass = load();
    }
    pass.audit
}

struct CheckPass {
    audit: AuditReport,
    journal_length: u64,
}

fn run_checks(evidence: &Evidence<'_>) -> CheckPass {
    let checks = CHECKS
        .into_iter()
        .map(|(id, title, check)| AuditCheck::new(id, title, check(evidence)))
        .collect();
    CheckPass {
        audit: AuditReport {
            run: evidence.run_id(),
            checks,
        },
        journal_length: evidence.journal.length,
    }
}

fn journal_length(run_dir: &Path) -> u64 {
    fs::metadata(run_dir.join("journal.jsonl")).map_or(0, |file| file.len())
}
