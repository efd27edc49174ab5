//! A small run as the runner leaves it: a journal, artifacts, repositories, a pull request, sandboxes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::journal_script;
use crate::{AuditReport, AuditStatus, audit};
use crate::{digest::sha256, task};

pub(super) const RUN: &str = "260301-080000-00af";
pub(super) const BRANCH: &str = "ralph/task-001/greet";
pub(super) const WORK_SANDBOX: &str = "local-0000000000a1";
pub(super) const CLEAN_ROOM: &str = "local-0000000000b2";
pub(super) const TASK: &str = "\
---
task_id: task-001
max_iterations: 5
max_wall_time_minutes: 60
max_cost_usd_estimate: 2.5 # dollars
max_tokens_total: 10000
test_command: sh test.sh
---
# Greet

- [x] M1.1 It greets
  - verify: `sh test.sh`
- [x] M1.2 It says goodbye
- [x] A box without a name
";

/// A record of the journal before it is numbered and chained.
#[derive(Clone)]
pub(super) struct AuditFixtureEntry {
    pub(super) epoch: u64,
    pub(super) active_ms: u64,
    pub(super) event: Value,
}

impl AuditFixtureEntry {
    pub(super) fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap()
    }
}

/// A directory with a complete run.
pub(super) struct AuditFixture {
    root: tempfile::TempDir,
    pub(super) entries: Vec<AuditFixtureEntry>,
    pub(super) base: String,
    pub(super) commits: [String; 2],
}

pub(super) fn path_variable() -> String {
    std::env::var_os("PATH").unwrap().into_string().unwrap()
}

/// A credential of the environment; no run may store it.
pub(super) const KNOWN_SECRET: &str = "Zq7/k\"9 x+\\4-value";

fn secrets() -> Vec<(String, String)> {
    vec![("SERVICE_TOKEN".to_owned(), KNOWN_SECRET.to_owned())]
}

impl AuditFixture {
    /// Returns a run that has succeeded after two iterations and two crashes.
    pub(super) fn succeeded() -> Self {
        let mut fixture = Self {
            root: tempfile::tempdir().unwrap(),
            entries: Vec::new(),
            base: String::new(),
            commits: Default::default(),
        };
        fs::create_dir_all(fixture.run_dir().join("files")).unwrap();
        fixture.write("ralph_task.md", TASK);
        fixture.write("files/activity.log", journal_script::ACTIVITY);
        fixture.write("files/guardrails.md", journal_script::GUARDRAILS);
        fixture.copy_repositories();
        fixture.entries = journal_script::successful_run(&fixture);
        fixture.write_run_dir(fixture.entries.len());
        fixture.write_journal(fixture.entries.len());
        fixture
    }

    pub(super) fn state_dir(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(super) fn run_dir(&self) -> PathBuf {
        self.state_dir().join("runs").join(RUN)
    }

    pub(super) fn origin(&self) -> PathBuf {
        self.root.path().join("origin.git")
    }

    pub(super) fn repo(&self) -> PathBuf {
        self.run_dir().join("repo.git")
    }

    pub(super) fn pull_path(&self, number: u64) -> PathBuf {
        let name = format!("pulls/0123456789abcdef/{number}.json");
        self.state_dir().join(name)
    }

    pub(super) fn sandbox(&self, name: &str) -> PathBuf {
        self.state_dir().join("sandboxes").join(name)
    }

    pub(super) fn contract() -> String {
        task::contract_digest(TASK)
    }

    pub(super) fn audit(&self) -> AuditReport {
        audit(
            &self.run_dir(),
            &self.state_dir(),
            &path_variable(),
            &secrets(),
        )
    }

    /// Writes a file of the run.
    pub(super) fn write(&self, name: &str, text: &str) {
        write(&self.run_dir().join(name), text);
    }

    /// Reads a file of the run.
    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.run_dir().join(name)).unwrap()
    }

    /// Replaces a piece of a file of the run.
    pub(super) fn replace(&self, name: &str, old: &str, new: &str) {
        let text = self.read(name);
        assert!(text.contains(old), "`{old}` is not in {name}");
        self.write(name, &text.replacen(old, new, 1));
    }

    /// Rewrites the journal with its first records.
    pub(super) fn write_journal(&self, length: usize) {
        let mut text = String::new();
        let mut previous = sha256(b"");
        for (entry, seq) in self.entries[..length].iter().zip(1..) {
            let line = json!({
                "v": 1, "seq": seq, "prev": previous, "at": "2026-03-01T08:00:00Z",
                "active_ms": entry.active_ms, "epoch": entry.epoch, "event": entry.event,
            });
            let line = line.to_string();
            previous = sha256(line.as_bytes());
            text.push_str(&line);
            text.push('\n');
        }
        self.write("journal.jsonl", &text);
    }

    /// Changes the journal's records and recomputes the chain.
    pub(super) fn edit_entries(&mut self, change: impl FnOnce(&mut Vec<AuditFixtureEntry>)) {
        change(&mut self.entries);
        self.write_journal(self.entries.len());
    }

    /// Returns the position of the `nth` record of a type, counted from 1.
    pub(super) fn entry_index(&self, kind: &str, nth: usize) -> usize {
        let mut indexes = (0..self.entries.len()).filter(|at| self.entries[*at].kind() == kind);
        indexes.nth(nth - 1).unwrap()
    }

    /// Returns an event to change; call `edit_entries` or `write_journal` afterwards.
    pub(super) fn event_mut(&mut self, kind: &str, nth: usize) -> &mut Value {
        let index = self.entry_index(kind, nth);
        &mut self.entries[index].event
    }

    /// Sets files and repositories to their state after the first records.
    pub(super) fn write_run_dir(&self, length: usize) {
        let entries = &self.entries[..length];
        let last = |kind: &str| entries.iter().rev().find(|entry| entry.kind() == kind);
        let head = |kind: &str| Some(last(kind)?.event["head"].as_str().unwrap().to_owned());
        let imported = head("commits_imported").or_else(|| head("workspace_ready"));
        set_branch(&self.repo(), imported.as_deref());
        set_branch(&self.origin(), head("pushed").as_deref());
        self.write_iterations(entries);
        for number in [1, 2] {
            remove_if_present(&self.pull_path(number));
        }
        if let Some(update) = last("pull_request_updated") {
            self.open_pull(1, update.event["pull"]["head"].as_str().unwrap());
        }
        remove_if_present(&self.state_dir().join("sandboxes"));
        for (id, purpose) in [(WORK_SANDBOX, "work"), (CLEAN_ROOM, "clean_room")] {
            let has_entry = |kind: &str| {
                entries
                    .iter()
                    .any(|entry| entry.kind() == kind && entry.event["sandbox"] == id)
            };
            if has_entry("sandbox_created") && !has_entry("sandbox_removed") {
                self.label(id, purpose);
            }
        }
    }

    /// Labels a sandbox as one of the run's.
    pub(super) fn label(&self, id: &str, purpose: &str) {
        let labels = json!({"labels": {"run": RUN, "purpose": purpose}, "env": {}});
        write(&self.sandbox(&format!("{id}.json")), &labels.to_string());
        fs::create_dir_all(self.sandbox(id)).unwrap();
    }

    pub(super) fn open_pull(&self, number: u64, commit: &str) {
        let record = json!({
            "v": 1, "number": number, "repo": self.origin(), "run": RUN, "head": BRANCH, "base": "main",
            "commit": commit, "title": "Greet", "body": "", "labels": [], "state": "draft",
        });
        write(&self.pull_path(number), &record.to_string());
    }

    fn write_iterations(&self, entries: &[AuditFixtureEntry]) {
        let root = self.run_dir().join("iterations");
        remove_if_present(&root);
        fs::create_dir_all(&root).unwrap();
        let has_entry = |kind: &str, number: u64| {
            entries
                .iter()
                .any(|entry| entry.kind() == kind && entry.event["iteration"] == number)
        };
        for number in [1, 2] {
            let started = has_entry("iteration_started", number);
            let open = if has_entry("iteration_finished", number) {
                ""
            } else {
                ".open"
            };
            for (name, text) in journal_script::artifacts(number).iter().filter(|_| started) {
                write(&root.join(format!("{number}{open}/{name}")), text);
            }
        }
    }

    /// Copies the repositories from a template, because creating them for every fixture is slow.
    fn copy_repositories(&mut self) {
        static TEMPLATE: OnceLock<FixtureRepositories> = OnceLock::new();
        let template = TEMPLATE.get_or_init(FixtureRepositories::new);
        self.base.clone_from(&template.base);
        self.commits.clone_from(&template.commits);
        for target in [self.origin(), self.repo()] {
            copy(&template.root.path().join("bare.git"), &target);
        }
    }
}

/// The repository that every fixture starts with.
struct FixtureRepositories {
    root: tempfile::TempDir,
    base: String,
    commits: [String; 2],
}

impl FixtureRepositories {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let init = ["init", "-q", "--template=", "-b", "main", "work"];
        git(root.path(), &init);
        let work = root.path().join("work");
        let step = |number: u64| {
            let (run, action) = (RUN, format!("{RUN}/{number}/1"));
            let message = format!("step {number}\n\nRalph-Run: {run}\nRalph-Action: {action}");
            commit(&work, &message)
        };
        let base = commit(&work, "base");
        let commits = [step(1), step(2)];
        let clone = ["clone", "-q", "--bare", "--template=", "work", "bare.git"];
        git(root.path(), &clone);
        Self {
            root,
            base,
            commits,
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Adds an empty commit and returns its id.
fn commit(repo: &Path, message: &str) -> String {
    git(repo, &["commit", "-q", "--allow-empty", "-m", message]);
    git(repo, &["rev-parse", "HEAD"])
}

/// Adds a commit to the run's branch of a bare repository and returns its id.
pub(super) fn commit_on_branch(repo: &Path, message: &str) -> String {
    let reference = format!("refs/heads/{BRANCH}");
    let tree = format!("{reference}^{{tree}}");
    let id = git(
        repo,
        &["commit-tree", "-p", &reference, "-m", message, &tree],
    );
    set_branch(repo, Some(&id));
    id
}

fn remove_if_present(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else if path.exists() {
        fs::remove_file(path).unwrap();
    }
}

/// Sets or removes the run's branch of a bare repository.
pub(super) fn set_branch(repo: &Path, commit: Option<&str>) {
    let path = repo.join("refs/heads").join(BRANCH);
    match commit {
        Some(commit) => write(&path, &format!("{commit}\n")),
        None => remove_if_present(&path),
    }
}

pub(super) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
        .args(args)
        .env_clear()
        .env("PATH", path_variable())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(super) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns the checks that failed.
pub(super) fn failed_checks(audit: &AuditReport) -> Vec<&'static str> {
    let failed = audit
        .checks
        .iter()
        .filter(|check| check.status == AuditStatus::Fail);
    failed.map(|check| check.id).collect()
}
