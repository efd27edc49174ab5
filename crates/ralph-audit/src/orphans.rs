//! I7: an ended run leaves no process, and no sandbox except the one retained for inspection.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::evidence::Evidence;
use super::report::{AuditOutcome, Findings};

/// The number of bytes of a process's environment that are read.
const ENVIRONMENT_BYTES: u64 = 1 << 20;
/// The lower bits of a process's lock limit are the number of the command, the others that of the
/// sandbox.
const COMMAND_BITS: u32 = 14;

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    if !evidence.has_ended() {
        return AuditOutcome::NotApplicable("the run has not ended");
    }
    let mut findings = Findings::default();
    let sandboxes = RecordedSandboxes::read(evidence);
    for id in &sandboxes.clean_rooms {
        findings.fail(format!("clean room `{id}` was created but not removed"));
    }
    let root = evidence.state_dir.join("sandboxes");
    for id in &sandboxes.removed {
        if root.join(id).exists() {
            findings.fail(format!("sandboxes/{id} still exists after its removal"));
        }
    }
    let labelled = labelled_sandboxes(&root, &evidence.run_id());
    for (id, purpose) in &labelled {
        if !sandboxes.known.contains(id) {
            findings.fail(format!(
                "sandboxes/{id}.json labels a sandbox (`{purpose}`) that is not in the journal"
            ));
        } else if sandboxes.removed.contains(id) {
            findings.fail(format!(
                "sandboxes/{id}.json labels a sandbox (`{purpose}`) that was removed"
            ));
        }
    }
    let ids = sandboxes.known.iter().chain(labelled.keys());
    report_running_processes(
        &ids.map(|id| (process_label(id), id)).collect(),
        &mut findings,
    );
    if !matches!(evidence.plan_text("sandbox"), "" | "local") {
        findings.note(
            "containers and volumes are not checked; `ralph prune-sandboxes --dry-run` lists those that are left",
        );
    }
    AuditOutcome::Checked(findings)
}

/// The sandboxes according to the journal.
#[derive(Default)]
struct RecordedSandboxes {
    known: BTreeSet<String>,
    removed: BTreeSet<String>,
    clean_rooms: BTreeSet<String>,
}

impl RecordedSandboxes {
    fn read(evidence: &Evidence<'_>) -> Self {
        let mut sandboxes = Self::default();
        for record in &evidence.journal.records {
            let id = record.text("sandbox").to_owned();
            match record.kind() {
                "sandbox_created" => {
                    sandboxes.removed.remove(&id);
                    if record.text("purpose") == "clean_room" {
                        sandboxes.clean_rooms.insert(id.clone());
                    }
                    sandboxes.known.insert(id);
                }
                // The sandboxes from before are unknown here, except the one in which the run continues.
                "run_adopted" => {
                    let adopted = record.event()["adoption"]["sandbox"].as_str();
                    sandboxes = Self::default();
                    sandboxes.known.extend(adopted.map(str::to_owned));
                }
                "sandbox_removed" => {
                    sandboxes.clean_rooms.remove(&id);
                    sandboxes.removed.insert(id);
                }
                _ => {}
            }
        }
        sandboxes
    }
}

/// Returns the local sandboxes with the run's label, and their purpose.
fn labelled_sandboxes(root: &Path, run: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let id = name.strip_suffix(".json")?.to_owned();
            let value = read_record(&entry.path())?;
            let labels = &value["labels"];
            let purpose = labels["purpose"].as_str().unwrap_or("?").to_owned();
            (labels["run"] == run).then_some((id, purpose))
        })
        .collect()
}

/// Returns the label of a sandbox's processes: the digits of its id, without the provider.
fn process_label(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(_, name)| name)
}

/// Reports processes that were started in one of the sandboxes, if the system shows them.
fn report_running_processes(sandboxes: &BTreeMap<&str, &String>, findings: &mut Findings) {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let process = entry.path();
        if is_zombie(&process) {
            continue;
        }
        let names = [
            sandbox_from_environment(&process),
            sandbox_from_lock_limit(&process),
        ];
        let mut names = names.iter().flatten();
        if let Some(id) = names.find_map(|name| sandboxes.get(name.as_str())) {
            findings.fail(format!("process {pid} of sandbox `{id}` is still running"));
        }
    }
}

/// Returns the record of a sandbox, unless it is being written or removed.
fn read_record(path: &Path) -> Option<Value> {
    let Ok(bytes) = fs::read(path) else {
        return None;
    };
    let Ok(value) = serde_json::from_slice(&bytes) else {
        return None;
    };
    Some(value)
}

/// Returns whether a process has ended and only waits for its parent.
fn is_zombie(process: &Path) -> bool {
    let Ok(status) = fs::read_to_string(process.join("status")) else {
        // The process no longer exists.
        return true;
    };
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_none_or(|state| state.trim_start().starts_with(['Z', 'X']))
}

/// Returns the sandbox that a process's initial environment names.
fn sandbox_from_environment(process: &Path) -> Option<String> {
    let mut environment = Vec::new();
    // A process of another user is unreadable and does not belong to the run.
    let Ok(file) = File::open(process.join("environ")) else {
        return None;
    };
    if file
        .take(ENVIRONMENT_BYTES)
        .read_to_end(&mut environment)
        .is_err()
    {
        return None;
    }
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"RALPH_SANDBOX="))
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Returns the sandbox that a process's limit of file locks encodes, which clearing the environment
/// does not remove: the upper bits are the number of the sandbox.
fn sandbox_from_lock_limit(process: &Path) -> Option<String> {
    let Ok(limits) = fs::read_to_string(process.join("limits")) else {
        return None;
    };
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    // Without a limit, the text is `unlimited`.
    let Ok(limit) = line.split_whitespace().next()?.parse::<u64>() else {
        return None;
    };
    Some(format!("{:012x}", limit >> COMMAND_BITS))
}
