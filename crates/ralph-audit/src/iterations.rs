//! I1: iterations are numbered without a gap, and the seven files of each match the record.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::digest;
use super::evidence::Evidence;
use super::journal::AuditRecord;
use super::report::{AuditOutcome, Findings};

const ITERATION_FILES: [&str; 7] = [
    "prompt.md",
    "response.json",
    "actions.jsonl",
    "git_diff.patch",
    "test_output.txt",
    "metrics.json",
    "pr_state.json",
];

/// The files that an iteration may have besides the seven: the received part of an interrupted
/// response, and the output of an agent. Their digests are checked with the other files of a run.
const ADDITIONAL_FILES: [&str; 3] = ["response.partial", "transcript.jsonl", "transcript.txt"];

pub(super) fn check(evidence: &Evidence<'_>) -> AuditOutcome {
    let mut findings = Findings::default();
    let numbers = IterationNumbers::read(evidence, &mut findings);
    let root = evidence.run_dir.join("iterations");
    let missing = missing_files(evidence);
    let unnamed = oldest_named_iteration(evidence, &missing);
    for (number, record) in &numbers.finished {
        let of_iteration = format!("iterations/{number}/");
        let is_named = missing.iter().any(|path| path.starts_with(&of_iteration));
        if is_named || unnamed.is_some_and(|oldest| *number <= oldest) {
            findings.note(format!(
                "iteration {number} is incomplete: the snapshot that the run was rebuilt from omits files"
            ));
            continue;
        }
        check_finished(&root, *number, record, &mut findings);
    }
    numbers.report_stray_dirs(&root, &mut findings);
    AuditOutcome::Checked(findings)
}

/// Returns the files that the copy of an adopted run omits.
fn missing_files<'a>(evidence: &'a Evidence<'_>) -> Vec<&'a str> {
    evidence
        .records("run_adopted")
        .filter_map(|record| record.event()["adoption"]["missing"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns the oldest iteration with a named omitted file, if the copy of an adopted run omits more
/// files than it names. The newest ones are named first.
fn oldest_named_iteration(evidence: &Evidence<'_>, missing: &[&str]) -> Option<u64> {
    let adopted = evidence.records("run_adopted");
    let has_more = |record: &AuditRecord| record.event()["adoption"]["missing_count"].is_u64();
    if !adopted.into_iter().any(has_more) {
        return None;
    }
    let numbers = missing.iter().filter_map(|path| {
        let rest = path.strip_prefix("iterations/")?;
        let Ok(number) = rest.split(['/', '.']).next()?.parse::<u64>() else {
            return None;
        };
        Some(number)
    });
    numbers.min()
}

/// The numbers of iterations according to the journal.
#[derive(Default)]
struct IterationNumbers<'a> {
    last: u64,
    open: Option<u64>,
    /// Whether another process has opened the run since the open iteration was started.
    reopened: bool,
    finished: BTreeMap<u64, &'a AuditRecord>,
}

impl<'a> IterationNumbers<'a> {
    fn read(evidence: &'a Evidence<'_>, findings: &mut Findings) -> Self {
        let mut numbers = Self::default();
        for record in &evidence.journal.records {
            match (record.kind(), record.event_u64("iteration")) {
                ("run_opened", _) => numbers.reopened = true,
                ("run_adopted", _) => {
                    let claimed = record.event()["adoption"]["claimed"]["iterations"].as_u64();
                    numbers.last = numbers.last.max(claimed.unwrap_or_default());
                }
                ("iteration_started", Some(number)) => numbers.start(number, record, findings),
                ("iteration_finished", Some(number)) => numbers.finish(number, record, findings),
                ("iteration_started" | "iteration_finished", None) => {
                    findings.fail(format!("{} has no `iteration`", record.describe()));
                }
                _ => {}
            }
        }
        numbers
    }

    fn start(&mut self, number: u64, record: &AuditRecord, findings: &mut Findings) {
        let continues = self.open == Some(number) && self.reopened;
        if let (Some(open), false) = (self.open, continues) {
            findings.fail(format!(
                "{}: iteration {number} starts while iteration {open} has not finished",
                record.describe()
            ));
        } else if !continues && number != self.last + 1 {
            findings.fail(format!(
                "{}: iteration {number} starts, but {} is next",
                record.describe(),
                self.last + 1
            ));
        }
        self.last = self.last.max(number);
        self.open = Some(number);
        self.reopened = false;
    }

    fn finish(&mut self, number: u64, record: &'a AuditRecord, findings: &mut Findings) {
        if self.finished.contains_key(&number) {
            findings.fail(format!(
                "{}: iteration {number} finishes a second time",
                record.describe()
            ));
        } else if self.open != Some(number) {
            findings.fail(format!(
                "{}: iteration {number} finishes, but it was not started",
                record.describe()
            ));
        }
        self.open = None;
        self.finished.entry(number).or_insert(record);
    }

    /// Reports directories without a record.
    fn report_stray_dirs(&self, root: &Path, findings: &mut Findings) {
        let names = match entry_names(root) {
            Ok(names) => names,
            Err(_) if self.finished.is_empty() => return,
            Err(error) => return findings.fail(format!("iterations/ cannot be read: {error}")),
        };
        for name in &names {
            let is_known = match name.strip_suffix(".open") {
                Some(number) => self.open.is_some_and(|open| open.to_string() == number),
                None => name.parse().is_ok_and(|number: u64| {
                    // The directory gets its final name before the journal records the end of the
                    // iteration.
                    let recorded = self.finished.contains_key(&number) || self.open == Some(number);
                    recorded && number.to_string() == *name
                }),
            };
            if !is_known {
                findings.fail(format!("iterations/{name} has no record in the journal"));
            } else if names.contains(&format!("{name}.open")) {
                findings.fail(format!("iterations/{name} exists both finished and open"));
            }
        }
    }
}

fn entry_names(dir: &Path) -> std::io::Result<BTreeSet<String>> {
    fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Checks the directory of a finished iteration against its record.
fn check_finished(root: &Path, number: u64, record: &AuditRecord, findings: &mut Findings) {
    let dir = root.join(number.to_string());
    let names = match entry_names(&dir) {
        Ok(names) => names,
        Err(error) => {
            return findings.fail(format!("iterations/{number} cannot be read: {error}"));
        }
    };
    // A crash during a write leaves a file with a temporary name.
    let is_temporary = |name: &str| name.starts_with('.') && name.strip_suffix(".tmp").is_some();
    let belongs = |name: &str| {
        ITERATION_FILES.contains(&name) || ADDITIONAL_FILES.contains(&name) || is_temporary(name)
    };
    for name in names.iter().filter(|name| !belongs(name)) {
        findings.fail(format!("iterations/{number}/{name} does not belong there"));
    }
    for name in ITERATION_FILES {
        let file = format!("iterations/{number}/{name}");
        let recorded = record.event()["files"][name].as_str();
        if let Err(why) = check_digest(&dir.join(name), recorded) {
            findings.fail(format!("{file} {why}"));
        }
        if !names.contains(name) {
            continue;
        }
        if let Err(why) = check_json(&dir.join(name), name, number) {
            findings.fail(format!("{file} {why}"));
        }
    }
    let recorded = record.event()["files"].as_object();
    for name in recorded.into_iter().flat_map(serde_json::Map::keys) {
        if !ITERATION_FILES.contains(&name.as_str()) {
            findings.fail(format!(
                "{} names the unknown file `{name}`",
                record.describe()
            ));
        }
    }
}

/// Checks that a file is a regular file with the recorded digest.
pub(super) fn check_digest(path: &Path, recorded: Option<&str>) -> Result<(), String> {
    let metadata = fs::symlink_metadata(path).map_err(|_| "is missing".to_owned())?;
    if !metadata.is_file() {
        return Err("is not a regular file".into());
    }
    let digest = digest::file_sha256(path).map_err(|error| format!("cannot be read: {error}"))?;
    match recorded {
        None => Err("has no digest in the journal".into()),
        Some(recorded) if recorded != digest => Err(format!(
            "was changed: its sha256 is {digest}, but the journal records {recorded}"
        )),
        Some(_) => Ok(()),
    }
}

/// Checks the content of the JSON files: `response.json` has a response, and `metrics.json` names
/// its iteration.
fn check_json(path: &Path, name: &str, number: u64) -> Result<(), String> {
    if !matches!(name, "response.json" | "metrics.json" | "pr_state.json") {
        return Ok(());
    }
    let bytes = fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("is not JSON: {error}"))?;
    let claimed = value["iteration"].as_u64();
    let has_response = value["attempts"].is_array() || value["agent"].is_string();
    if name == "response.json" && !has_response {
        return Err("has neither a list `attempts` nor an `agent`".into());
    }
    match claimed {
        Some(claimed) if name == "metrics.json" && claimed != number => {
            Err(format!("is about iteration {claimed}"))
        }
        _ => Ok(()),
    }
}
