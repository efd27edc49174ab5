//! Everything the checks look at, and the few facts that several of them need.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::git::AuditGit;
use super::journal::{AuditJournal, AuditRecord};
use super::known_secrets::AuditSecrets;
use super::seal::AuditSeal;

/// Where a run's traces are.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// The run's directory.
    pub(super) run_dir: &'a Path,
    /// The state directory.
    pub(super) state_dir: &'a Path,
    /// Git, in an environment of its own.
    pub(super) git: AuditGit<'a>,
    /// The journal's seal, read before the journal: a living process moves both.
    pub(super) seal: AuditSeal,
    /// The run's journal.
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

    /// Returns the plan; null in a journal without one.
    pub(super) fn plan(&self) -> &Value {
        self.journal
            .records
            .first()
            .map_or(&NULL, |record| &record.event()["plan"])
    }

    /// Returns a text of the plan, empty if there is none.
    pub(super) fn plan_text(&self, key: &str) -> &str {
        self.plan()[key].as_str().unwrap_or_default()
    }

    /// Returns the run's id: the plan's, or else the directory's name.
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

    /// Returns the run's own bare repository.
    pub(super) fn repo(&self) -> PathBuf {
        self.run_dir.join("repo.git")
    }

    /// Returns the records of one type of event.
    pub(super) fn records(&self, kind: &'a str) -> impl DoubleEndedIterator<Item = &AuditRecord> {
        let records = self.journal.records.iter();
        records.filter(move |record| record.kind() == kind)
    }

    /// Returns the last status that the journal tells.
    pub(super) fn status(&self) -> &str {
        self.records("status_changed")
            .next_back()
            .map_or("created", |record| record.text("status"))
    }

    /// Tells whether nothing may follow any more.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status(), "succeeded" | "failed" | "stopped")
    }

    /// Returns the digest of the contract that was in force when a record was written.
    pub(super) fn contract_at(&self, record: u64) -> &str {
        self.records("contract_changed")
            .rfind(|change| change.number <= record)
            .map_or_else(
                || self.plan_text("contract"),
                |change| change.text("contract"),
            )
    }
}
