//! CON: the run's task file and stored contracts match the digests in the journal.

use std::collections::BTreeSet;
use std::fs;

use super::digest::sha256;
use super::evidence::Evidence;
use super::report::{AuditOutcome, Findings};
use super::task;

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    let pinned = evidence.contract_at(u64::MAX);
    match fs::read(evidence.run_dir.join("ralph_task.md")) {
        Err(error) => findings.fail(format!("ralph_task.md cannot be read: {error}")),
        Ok(bytes) => {
            let found = task::contract_digest(&task::normalize(&bytes));
            // The journal records a changed contract before the file is written.
            let is_behind =
                !evidence.has_ended() && pinned_contracts(evidence).contains(found.as_str());
            if found != pinned && !is_behind {
                findings.fail(describe_change(evidence));
                findings.note(format!(
                    "the sha256 of ralph_task.md with all boxes open is {found}, the pinned one is {pinned}"
                ));
            }
        }
    }
    check_stored_contracts(evidence, &mut findings);
    for adopted in evidence.records("run_adopted") {
        let origin = match adopted.event()["adoption"]["source"].as_str() {
            Some("state_ref") => "a snapshot in the repository",
            _ => "the files of its sandbox, which the agent could write",
        };
        findings.note(format!(
            "unverified origin ({}): the run was rebuilt from {origin}",
            adopted.describe()
        ));
    }
    AuditOutcome::Checked(findings)
}

/// Returns all current and former contracts.
fn pinned_contracts<'a>(evidence: &'a Evidence<'_>) -> BTreeSet<&'a str> {
    let changed = evidence.records("contract_changed");
    let changed = changed.map(|record| record.text("contract"));
    changed.chain([evidence.plan_text("contract")]).collect()
}

fn describe_change(evidence: &Evidence<'_>) -> &'static str {
    if evidence.has_ended() {
        "ralph_task.md was changed by hand after the run had ended"
    } else {
        "ralph_task.md was changed by hand, which has no effect; `ralph resume` restores it"
    }
}

/// Checks that the content of each stored contract matches its name, and that none is missing.
fn check_stored_contracts(evidence: &Evidence<'_>, findings: &mut Findings) {
    let directory = evidence.run_dir.join("contracts");
    if !directory.exists() && !evidence.journal.is_sealed() {
        // Versions before the introduction of seals did not store contracts.
        return;
    }
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut found = BTreeSet::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(digest) = name.strip_suffix(".md") else {
            continue;
        };
        match fs::read(entry.path()) {
            // All boxes of a stored contract are open, so the digest covers the whole text.
            Ok(bytes) if sha256(task::normalize(&bytes).as_bytes()) == digest => {}
            Ok(_) => findings.fail(format!(
                "contracts/{name} does not match the digest in its name"
            )),
            Err(error) => findings.fail(format!("contracts/{name} cannot be read: {error}")),
        }
        found.insert(digest.to_owned());
    }
    let proposed = evidence.records("command_received").map(|record| {
        let command = &record.event()["command"]["task"]["contract"];
        command.as_str().unwrap_or_default()
    });
    let applied = evidence.records("diagnosis_applied");
    let applied = applied.map(|record| record.text("contract"));
    let named = pinned_contracts(evidence)
        .into_iter()
        .chain(proposed)
        .chain(applied);
    for digest in named.collect::<BTreeSet<&str>>() {
        if !digest.is_empty() && !found.contains(digest) {
            findings.fail(format!("contracts/{digest}.md is missing"));
        }
    }
}
