//! Compares the state after a power cut with the journal.

use std::path::{Path, PathBuf};
use std::process::Command;

use ralph_guest::available;
use serde_json::Value;

use super::disk::SimulatedDisk;
use crate::crash_stage::{BRANCH, CrashStage};

/// The events acknowledged before the cut: every record whose sync had completed.
pub(super) struct AcknowledgedEvents {
    journal: PathBuf,
    bytes: Vec<u8>,
    events: Vec<Value>,
}

impl AcknowledgedEvents {
    /// Reads the durable part of the journal.
    pub(super) fn read(disk: &SimulatedDisk, journal: &Path) -> Self {
        let bytes = disk.file(journal).map(|file| file.durable.clone());
        let bytes = bytes.unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        let events: Vec<Value> = lines
            .filter_map(|line| available(serde_json::from_slice::<Value>(line)))
            .map(|mut record| record["event"].take())
            .collect();
        Self {
            journal: journal.to_owned(),
            bytes,
            events,
        }
    }

    /// Returns whether the first record is known to be acknowledged, because others follow.
    fn has_started(&self) -> bool {
        self.events.len() > 1
    }

    fn last(&self, kind: &str) -> Option<(usize, &Value)> {
        let mut events = self.events.iter().enumerate();
        events.rfind(|(_, event)| event["type"] == kind)
    }

    /// Returns the acknowledged data that is missing on disk.
    pub(super) fn missing(&self, stage: &CrashStage) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.has_started() {
            return missing;
        }
        let is_kept = |kept: Vec<u8>| kept.starts_with(&self.bytes);
        if !std::fs::read(&self.journal).is_ok_and(is_kept) {
            missing.push("records of the journal".to_owned());
        }
        let [home, project] = stage.roots();
        let own = self.journal.with_file_name("repo.git");
        let base = self.events[0]["plan"]["base"].as_str().unwrap().to_owned();
        let mut expect = |what: &str, repo: &Path, range: &str| {
            if let Some(why) = damage(repo, range) {
                missing.push(format!("{what} in {}: {why}", repo.display()));
            }
        };
        for kind in ["workspace_ready", "commits_imported"] {
            if let Some((_, event)) = self.last(kind) {
                expect(kind, &own, &format!("{base}..{}", id(event, "head")));
            }
        }
        if let Some((_, event)) = self.last("workspace_ready") {
            expect(
                "the base",
                &own,
                &format!("--no-walk {}", id(event, "head")),
            );
        }
        if let Some((_, event)) = self.last("pushed") {
            expect(
                "pushed",
                &project,
                &format!("{base}..{}", id(event, "head")),
            );
            expect("the branch", &project, BRANCH);
        }
        if let Some((_, event)) = self.last("state_saved") {
            expect("state_saved", &project, &id(event, "commit"));
        }
        if let Some((commit, sandbox)) = self.commit_in_sandbox() {
            let repo = home.join("sandboxes").join(sandbox).join("repo");
            expect("commit", &repo, &format!("{base}..{commit}"));
        }
        missing
    }

    /// Returns the acknowledged commits that are missing from the branch after the run was resumed
    /// to its end.
    pub(super) fn lost(&self, stage: &CrashStage) -> Vec<String> {
        let [_, project] = stage.roots();
        let commits = self.events.iter().filter_map(acknowledged_commit);
        let is_lost = |commit: &&str| {
            let mut git = Command::new("git");
            git.arg("-C").arg(&project);
            git.args(["merge-base", "--is-ancestor", commit, BRANCH]);
            !git.output().unwrap().status.success()
        };
        commits
            .filter(is_lost)
            .map(|commit| format!("commit {commit} is no longer on the branch"))
            .collect()
    }

    /// Returns the last commit of an action that the host has not imported, with its sandbox.
    fn commit_in_sandbox(&self) -> Option<(String, String)> {
        let imported = self.last("commits_imported").map_or(0, |(place, _)| place);
        let commits = self.events.iter().skip(imported);
        let commit = commits.filter_map(sandbox_commit).next_back()?;
        let sandbox = self
            .events
            .iter()
            .rfind(|event| event["type"] == "sandbox_created" && event["purpose"] == "work")?;
        Some((commit.to_owned(), id(sandbox, "sandbox")))
    }
}

/// Returns the commit created by a commit action.
fn sandbox_commit(event: &Value) -> Option<&str> {
    let is_commit = event["type"] == "action_finished" && event["action"] == "commit";
    let detail = event["detail"].as_str().filter(|_| is_commit)?;
    detail.strip_prefix("commit ")?.get(..40)
}

/// Returns the commit that a record acknowledges.
fn acknowledged_commit(event: &Value) -> Option<&str> {
    let imported = event["head"].as_str();
    let imported = imported.filter(|_| event["type"] == "commits_imported");
    imported.or_else(|| sandbox_commit(event))
}

fn id(event: &Value, key: &str) -> String {
    event[key].as_str().unwrap_or_default().to_owned()
}

/// Returns damaged objects of a range; each is read and compared with its id.
fn damage(repo: &Path, range: &str) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repo)
        .args([
            "-c",
            "safe.directory=*",
            "rev-list",
            "--verify-objects",
            "--quiet",
        ])
        .args(range.split(' '))
        .env("GIT_CEILING_DIRECTORIES", repo.parent().unwrap())
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_whole = output.status.success() && !words.contains("error:");
    (!is_whole).then_some(words)
}

/// Resumes the surviving state to its end and returns the differences.
pub(super) fn resume_and_compare(stage: &CrashStage, expected: &[String]) -> Vec<String> {
    let args = match stage.shown() {
        None => vec!["run", "--model", "scripted:replies.jsonl"],
        Some(shown) if shown["status"] == "succeeded" => Vec::new(),
        Some(_) => vec!["resume", "last"],
    };
    let mut wrong = Vec::new();
    for args in [args, vec!["audit", "last"]] {
        let seen = (!args.is_empty()).then(|| stage.run(&args));
        if let Some(seen) = seen.filter(|seen| seen.code != 0) {
            wrong.push(format!(
                "{args:?} ended with {}: {}{}",
                seen.code, seen.stdout, seen.stderr
            ));
        }
    }
    // An unacknowledged commit may be recreated differently; the final files are the same.
    let tree = |commits: &[String]| {
        commits
            .first()
            .and_then(|line| line.get(..40).map(str::to_owned))
    };
    let commits = if wrong.is_empty() {
        stage.commits(BRANCH)
    } else {
        expected.to_vec()
    };
    if tree(&commits) != tree(expected) {
        wrong.push(format!("the branch has other files: {commits:?}"));
    }
    wrong
}
