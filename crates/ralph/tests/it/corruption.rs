//! Every relevant file of a run is corrupted in five ways, and the audit reports it each time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ralph_audit::{AuditReport, audit};
use serde_json::{Value, json};

use crate::project::{Project, actions, append, claiming, control, run, work, write};

/// Every file of a run, with its bytes.
type RunFileContents = BTreeMap<String, Vec<u8>>;

/// Files without information about the run: a lock, and the repository, whose objects git checks.
const IGNORED_FILES: [&str; 3] = ["lock", "repo.git", "commands"];

fn walk(root: &Path, directory: &Path, files: &mut RunFileContents) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if IGNORED_FILES.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, files);
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
}

/// A run and its paths.
struct CorruptedRun {
    project: Project,
    run: PathBuf,
}

impl CorruptedRun {
    fn new(project: Project) -> Self {
        let run = project.run_dir();
        Self { project, run }
    }

    /// Returns the files of the run, and its pull request as `pulls/…`.
    fn files(&self) -> RunFileContents {
        let mut files = RunFileContents::new();
        walk(&self.run, &self.run, &mut files);
        let mut pulls = RunFileContents::new();
        let home = self.project.home();
        if home.join("pulls").exists() {
            walk(&home, &home.join("pulls"), &mut pulls);
        }
        files.extend(
            pulls
                .into_iter()
                .filter(|(name, _)| name.strip_suffix(".json").is_some()),
        );
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.starts_with("pulls/") {
            self.project.home().join(name)
        } else {
            self.run.join(name)
        }
    }

    fn audit(&self) -> AuditReport {
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        audit(&self.run, &self.project.home(), &path, &[])
    }

    /// Corrupts a file, returns the audit's report about it, and restores the file.
    fn audit_failures(&self, name: &str, bytes: &[u8], corrupt: Option<&[u8]>) -> Vec<String> {
        let path = self.path(name);
        match corrupt {
            Some(corrupt) => fs::write(&path, corrupt).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let audit = self.audit();
        fs::write(&path, bytes).unwrap();
        assert_eq!(audit.is_green(), failures(&audit).is_empty());
        failures(&audit)
    }
}

fn failures(audit: &AuditReport) -> Vec<String> {
    let failed = audit
        .checks
        .iter()
        .filter(|check| check.status == ralph_audit::AuditStatus::Fail);
    let findings = failed.flat_map(|check| check.findings.clone());
    findings
        .filter(|finding| !finding.starts_with("note: "))
        .collect()
}

/// Returns five corruptions of a file: a flipped bit, truncated, empty, older content, missing.
fn corruptions(bytes: &[u8], old: Option<&Vec<u8>>) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let middle = bytes.len() / 2;
    let mut flipped = bytes.to_vec();
    match flipped.get_mut(middle) {
        Some(byte) => *byte ^= 1,
        None => flipped.push(b'x'),
    }
    let older = old.filter(|old| *old != bytes).cloned();
    let first_line = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let shorter = &bytes[first_line.len().min(bytes.len())..];
    let older = older.unwrap_or_else(|| [shorter, b"older\n"].concat());
    vec![
        ("flipped", Some(flipped)),
        ("cut", Some(bytes[..middle].to_vec())),
        ("emptied", Some(Vec::new())),
        ("older", Some(older)),
        ("removed", None),
    ]
}

/// Corrupts every file in every way. Returns the number of corruptions.
fn corrupt_all(
    corrupted: &CorruptedRun,
    old: &RunFileContents,
    is_expected: impl Fn(&str, &str) -> bool,
) -> usize {
    let clean = corrupted.audit();
    assert!(clean.is_green(), "{}", clean.render());
    let mut missed = Vec::new();
    let mut tried = 0;
    for (name, bytes) in corrupted.files() {
        for (how, corrupt) in corruptions(&bytes, old.get(&name)) {
            if corrupt.as_ref() == Some(&bytes) || !is_expected(&name, how) {
                continue;
            }
            tried += 1;
            let failures = corrupted.audit_failures(&name, &bytes, corrupt.as_deref());
            if !failures.iter().any(|finding| finding.contains(&name)) {
                missed.push(format!("{name} {how}: {failures:?}"));
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {tried}:\n{}",
        missed.len(),
        missed.join("\n")
    );
    assert!(corrupted.audit().is_green());
    tried
}

fn doctor() -> Value {
    json!({"when": "You are the doctor of a Ralph loop", "reply": {
        "summary": "Nobody writes the file.", "patterns": [], "root_causes": [],
        "guardrails": [{"name": "n", "trigger": "t", "instruction": "i", "evidence": "e"}],
        "spec_edits": [{"find": "One is there", "replace": "One is there, in a.txt", "why": "clearer"}]},
        "usage": {"input_tokens": 500, "output_tokens": 50}})
}

/// Returns a paused run with a doctor's report, a note, an edited task file and a torn log, and its
/// files before most of that.
fn paused() -> (CorruptedRun, RunFileContents) {
    let first = actions(&[
        write(".ralph/progress.md", "The tests are red.\n"),
        append(".ralph/guardrails.md", "- One file per box.\n"),
        run("echo wrong >&2; exit 3"),
    ]);
    let ask = actions(&[control("pause", "where?")]);
    let last = claiming(
        &["M1.1", "M1.2"],
        &[
            &[write(".ralph/progress.md", "The tests are green.\n")],
            &work()[..],
        ]
        .concat(),
    );
    let project = Project::new()
        .set("mode", "guided")
        .script(&[doctor(), first, ask, last]);
    project.run().expect(11);
    let corrupted = CorruptedRun::new(project);
    let before = corrupted.files();
    let project = &corrupted.project;
    project.ralph(&["note", "last", "use a.txt"]).expect(0);
    project.ralph(&["diagnose", "last", "--apply"]).expect(0);
    (corrupted, before)
}

#[test]
fn every_corruption_of_a_paused_run_is_found() {
    let (corrupted, before) = paused();
    let tried = corrupt_all(&corrupted, &before, |name, how| match name {
        // The user may edit these before the run ends; removed, they are recreated.
        "files/notes.md" => false,
        // After a crash it may lag behind the journal.
        "journal.seal" => how != "older",
        _ => true,
    });
    assert!(tried >= 120, "{tried}");
}

#[test]
fn every_corruption_of_a_finished_run_is_found() {
    let (corrupted, before) = paused();
    let project = &corrupted.project;
    // Files left by a user's edit, a torn line and a gate.
    let task = corrupted.run.join("ralph_task.md");
    let edited = fs::read_to_string(&task)
        .unwrap()
        .replace("Two is there", "Three is there");
    fs::write(&task, edited).unwrap();
    let log = corrupted.run.join("files/activity.log");
    let torn = [&fs::read(&log).unwrap()[..], b"2026-11-15T21"].concat();
    fs::write(&log, torn).unwrap();
    let decision = json!({"host": "a.example", "decision": "denied"});
    fs::write(
        corrupted.run.join("egress.jsonl"),
        format!("{decision}\n{decision}\n"),
    )
    .unwrap();
    project.ralph(&["resume", "last"]).expect(0);
    let files = corrupted.files();
    for name in [
        "journal.jsonl",
        "journal.seal",
        "ralph_task.md",
        "ralph_task.rejected.md",
        "egress.jsonl",
        "doctor/1/prompt.md",
        "files/activity.log",
        "files/errors.log",
        "files/guardrails.md",
        "files/progress.md",
        "files/notes.md",
        "files/diagnostics.md",
        "files/git-config",
        "files/git-info-exclude",
        "iterations/3/prompt.md",
    ] {
        assert!(
            files.contains_key(name),
            "{name} is not there: {:?}",
            files.keys()
        );
    }
    for start in ["contracts/", "pulls/", "recovered/", "doctor/1/reply-"] {
        let there = files.keys().filter(|name| name.starts_with(start)).count();
        assert!(there > 0, "{start}");
    }
    let tried = corrupt_all(&corrupted, &before, |name, how| {
        (name, how) != ("journal.seal", "older")
    });
    assert!(tried >= 150, "{tried}");
}

/// Only the seal protects the last record of a journal, whichever byte changes.
#[test]
fn every_byte_of_the_last_record_counts() {
    let project = Project::new().script(&[actions(&[control("pause", "where?")])]);
    project.run().expect(11);
    let corrupted = CorruptedRun::new(project);
    let journal = fs::read(corrupted.run.join("journal.jsonl")).unwrap();
    let start = journal[..journal.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    for at in (start..journal.len()).step_by(7) {
        let mut flipped = journal.clone();
        flipped[at] ^= 1;
        fs::write(corrupted.run.join("journal.jsonl"), &flipped).unwrap();
        let ended = corrupted.project.ralph(&["audit", "last"]).expect(1);
        assert!(
            ended.stdout.contains("journal."),
            "{at}: {}",
            ended.combined()
        );
        assert!(
            !ended.combined().contains("upgrade"),
            "{at}: {}",
            ended.combined()
        );
    }
    let cut = &journal[..start];
    fs::write(corrupted.run.join("journal.jsonl"), cut).unwrap();
    let ended = corrupted.project.ralph(&["audit", "last"]).expect(1);
    assert!(
        ended.stdout.contains("records were cut off"),
        "{}",
        ended.stdout
    );
}
