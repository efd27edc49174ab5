//! FIL: the run's files match the record of the last process that ended its work on the run.
//!
//! The files of finished iterations and the stored contracts have separate digests (I1, CON).

use serde_json::Value;

use super::digest;
use super::evidence::Evidence;
use super::iterations::check_digest;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

/// Files that the user may edit until the run ends.
const EDITABLE: [&str; 3] = ["files/notes.md", "ralph_task.md", "ralph_task.rejected.md"];
/// The statuses in which a process leaves a run.
const AT_REST: [&str; 5] = ["paused", "succeeded", "failed", "stopped", "sandbox_lost"];
/// The gate writes to this file until its process ends, so it may be longer than recorded.
const EGRESS_LOG: &str = "egress.jsonl";

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let Some(recorded) = evidence.records("files_recorded").next_back() else {
        return AuditOutcome::NotApplicable("its files were not recorded");
    };
    if !is_unmodified_since(evidence, recorded) || !is_at_rest(evidence) {
        return AuditOutcome::NotApplicable(
            "a process has worked on the run since its files were recorded",
        );
    }
    let mut findings = Findings::default();
    let files = recorded.event()["files"].as_object();
    for (path, entry) in files.into_iter().flatten() {
        let Err(why) = check_file(evidence, path, entry) else {
            continue;
        };
        let finding = format!("{path} {why} ({})", recorded.describe());
        if EDITABLE.contains(&path.as_str()) && !evidence.has_ended() {
            findings.note(finding);
        } else {
            findings.fail(finding);
        }
    }
    AuditOutcome::Checked(findings)
}

/// Returns whether no process has written to the run's files since a record.
fn is_unmodified_since(evidence: &Evidence<'_>, recorded: &AuditRecord) -> bool {
    let records = evidence.journal.records.iter().rev();
    let mut later = records.take_while(|record| record.number > recorded.number);
    later.all(|record| match record.kind() {
        "status_changed" | "notice" | "mode_changed" => true,
        "command_received" => leaves_files_unchanged(&record.event()["command"]),
        _ => false,
    })
}

/// Returns whether the last process closed the run: a process that dies between recording the
/// files and the status may still have written to the logs.
fn is_at_rest(evidence: &Evidence<'_>) -> bool {
    let last = evidence.records("status_changed").next_back();
    let status = last.and_then(|record| record.event()["status"].as_str());
    status.is_some_and(|status| AT_REST.contains(&status))
}

/// Returns whether a command to a run without a process changes none of its files. A changed
/// contract is a new file.
fn leaves_files_unchanged(command: &Value) -> bool {
    let without_files = ["task", "profile", "mode"];
    command == "stop" || without_files.iter().any(|name| command[name].is_object())
}

fn check_file(evidence: &Evidence<'_>, path: &str, entry: &Value) -> Result<(), String> {
    // A pull request on this machine is stored next to the runs.
    let root = if path.starts_with("pulls/") {
        evidence.state_dir
    } else {
        evidence.run_dir
    };
    let file = root.join(path);
    let recorded = entry["sha256"].as_str();
    if path != EGRESS_LOG {
        return check_digest(&file, recorded);
    }
    let length = entry["bytes"].as_u64().unwrap_or_default();
    let digests = digest::prefix_digests(&file, &[length]);
    let digests = digests.map_err(|error| format!("cannot be read: {error}"))?;
    match digests.first() {
        Some(Some(found)) if Some(found.as_str()) == recorded => Ok(()),
        Some(Some(_)) => Err(format!("was changed: its first {length} bytes differ")),
        Some(None) | None => Err(format!("is shorter than the recorded {length} bytes")),
    }
}
