//! CON: the task file that the run holds is the one its journal pins.

use std::fs;

use super::evidence::Evidence;
use super::report::{Findings, Outcome};
use super::task;

pub(super) fn check(evidence: &Evidence<'_>) -> Outcome {
    let mut findings = Findings::default();
    let pinned = evidence.contract_at(u64::MAX);
    match fs::read(evidence.run_dir.join("ralph_task.md")) {
        Err(error) => findings.fail(format!("ralph_task.md cannot be read: {error}")),
        Ok(bytes) => {
            let found = task::contract(&task::clean(&bytes));
            if found != pinned {
                findings.fail(changed(evidence));
                findings.note(format!(
                    "ralph_task.md with open boxes has the sha256 {found}, pinned is {pinned}"
                ));
            }
        }
    }
    Outcome::Checked(findings)
}

fn changed(evidence: &Evidence<'_>) -> &'static str {
    if evidence.has_ended() {
        "ralph_task.md was changed by hand after the run had ended"
    } else {
        "the task file was changed by hand and not taken up yet; `ralph resume` does that"
    }
}
