//! The input of all checks, and facts that several of them need.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::git::AuditGit;
use super::journal::{AuditJournal, AuditRecord};
use super::known_secrets::AuditSecrets;
use super::seal::AuditSeal;

/// The evidence of a run.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) run_dir: &'a Path,
    pub(super) state_dir: &'a Path,
    /// Git in an isolated environment.
    pub(super) git: AuditGit<'a>,
    /// The journal's seal, read before the journal: a live process updates both.
    pub(super) seal: AuditSeal,
    pub(super) journal: AuditJournal,
    /// The credentials of the environment.
    pub(super) known_secrets: AuditSecrets,
}

static NULL: Value = Value::Null;

impl<'a> Evidence<'a> {
    pub(super) fn load(
        run_dir: &'a Path,
        state_dir: &'a Path,
        path_variable: &'a str,
        secrets: &[(String, String)],
    ) -> Self {
        Self {
            run_dir,
            state_dir,
            git: AuditGit { path_variable },
            seal: AuditSeal::read(run_dir),
            journal: AuditJournal::read(&run_dir.join("journal.jsonl")),
            known_secrets: AuditSecrets::new(secrets),
        }
    }

    /// Returns the plan, or null in a journal without one.
    pub(super) fn plan(&self) -> &Value {
        self.journal
            .records
            .first()
            .map_or(&NULL, |record| &record.event()["plan"])
    }

    /// Returns a string of the plan, empty if it is missing.
    pub(super) fn plan_text(&self, key: &str) -> &str {
        self.plan()[key].as_str().unwrap_or_default()
    }

    /// Returns the repository that the run delivers to.
    pub(super) fn repo_address(&self) -> &str {
        let adopted = self.records("run_adopted").rev();
        let mut moved = adopted.filter_map(|record| record.event()["adoption"]["repo"].as_str());
        moved.next().unwrap_or_else(|| self.plan_text("repo"))
    }

    /// Returns the run's id: the plan's, or else the name of the directory.
    pub(super) fn run_id(&self) -> String {
        match self.plan_text("run") {
            "" => self
                .run_dir
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            run => run.to_owned(),
        }
    }

    /// Returns the run's bare repository.
    pub(super) fn repo(&self) -> PathBuf {
        self.run_dir.join("repo.git")
    }

    /// Returns the directory of objects that the run's repository borrows from, if it is missing.
    pub(super) fn missing_shared_objects(&self) -> Option<String> {
        let objects = self.repo().join("objects");
        let borrowed = fs::read_to_string(objects.join("info/alternates"));
        let borrowed = borrowed.unwrap_or_else(|_| String::new());
        let missing = borrowed.lines().find(|line| !objects.join(line).is_dir())?;
        let shown = missing.trim_start_matches("../");
        Some(format!(
            "repo.git borrows objects from `{shown}` in the state directory, which does not exist"
        ))
    }

    /// Returns the records of one type of event.
    pub(super) fn records(&self, kind: &'a str) -> impl DoubleEndedIterator<Item = &AuditRecord> {
        let records = self.journal.records.iter();
        records.filter(move |record| record.kind() == kind)
    }

    /// Returns the last status in the journal.
    pub(super) fn status(&self) -> &str {
        self.records("status_changed")
            .next_back()
            .map_or("created", |record| record.text("status"))
    }

    /// Returns whether the run has ended.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status(), "succeeded" | "failed" | "stopped")
    }

    /// Returns the digest of the contract that applied when a record was written.
    pub(super) fn contract_at(&self, record: u64) -> &str {
        self.records("contract_changed")
            .rfind(|change| change.number <= record)
            .map_or_else(
                || self.plan_text("contract"),
                |change| change.text("contract"),
            )
    }
}
