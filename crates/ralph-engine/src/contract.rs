//! The contract in force: the task file as the run holds it, and changes that a person makes to it.
//!
//! A person edits the task file on the host: the one the run was started with, or the run's own
//! copy. What the model does to its copy in the sandbox never comes here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ralph_core::id::Digest;
use ralph_core::lint;
use ralph_core::task::{Contract, TaskFile};

use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::git::OwnFiles;
use crate::store::RunDir;

/// The largest file that is looked at.
const MAX_BYTES: u64 = 512 << 10;

/// The contract in force, and where a person may change it.
pub struct Pinned {
    dir: RunDir,
    source: PathBuf,
    task: TaskFile,
    digest: Digest,
    /// The bytes of the source that were looked at last.
    source_seen: Option<Digest>,
    /// The bytes of the run's copy that were looked at or written last.
    copy_seen: Option<Digest>,
}

/// What became of a person's change.
#[derive(Debug)]
pub enum Taken {
    /// It holds from now on.
    Changed {
        /// The new contract's digest.
        digest: Digest,
        /// What is different, for people.
        changes: Vec<String>,
        /// Boxes whose text or verification changed: they have to be verified again.
        reopened: BTreeSet<String>,
    },
    /// It cannot be used.
    Rejected(String),
}

/// Returns the digest that a contract goes by: of its text with all boxes open, however its lines end.
pub fn digest(task: &TaskFile) -> Digest {
    let text = task.with_ticks(&BTreeSet::new()).replace("\r\n", "\n");
    Digest::of(text.trim_start_matches('\u{feff}').as_bytes())
}

/// Pins a new run's contract: once for the run, once for people to change.
pub fn pin(dir: &RunDir, task: &TaskFile) -> Result<(), StoreError> {
    let text = task.with_ticks(&BTreeSet::new());
    durable::write(&dir.pinned_contract(), text.as_bytes())?;
    durable::write(&dir.contract(), text.as_bytes())
}

impl Pinned {
    /// Reads the contract of a run. `known` are the contracts that were in force at some time.
    pub fn open(dir: &RunDir, source: PathBuf, known: &[Digest]) -> Result<Self, RunError> {
        let path = dir.pinned_contract();
        let bytes = std::fs::read(&path).map_err(StoreError::when("read", &path))?;
        let task = TaskFile::parse(&bytes).map_err(|findings| {
            let first = findings.first().map(ToString::to_string);
            RunError::Contract(first.unwrap_or_default())
        })?;
        // A source that was in force once is the one the run started from; only a new one is a change.
        let source_seen = read(&source).filter(|bytes| {
            TaskFile::parse(bytes).is_ok_and(|task| known.contains(&digest(&task)))
        });
        Ok(Self {
            dir: dir.clone(),
            digest: digest(&task),
            source_seen: source_seen.map(|bytes| Digest::of(&bytes)),
            copy_seen: Some(Digest::of(&bytes)),
            source,
            task,
        })
    }

    /// Returns the task.
    pub fn task(&self) -> &TaskFile {
        &self.task
    }

    /// Returns the machine part.
    pub fn contract(&self) -> &Contract {
        &self.task.contract
    }

    /// Returns whether the run's own files are part of its commits.
    pub fn own_files(&self) -> OwnFiles {
        if self.contract().commit_state {
            OwnFiles::Committed
        } else {
            OwnFiles::LeftOut
        }
    }

    /// Returns its digest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Writes the ticks into the run's copies and returns the text that the sandbox should show.
    pub fn write_ticks(&mut self, ticked: &BTreeSet<String>) -> Result<String, StoreError> {
        let text = self.task.with_ticks(ticked);
        let digest = Digest::of(text.as_bytes());
        if self.copy_seen.as_ref() != Some(&digest) {
            durable::write(&self.dir.pinned_contract(), text.as_bytes())?;
            durable::write(&self.dir.contract(), text.as_bytes())?;
            self.copy_seen = Some(digest);
        }
        Ok(text)
    }

    /// Looks whether a person changed the contract, and takes a usable change up.
    pub fn take_up(&mut self) -> Option<Taken> {
        let copy = read(&self.dir.contract())?;
        let now = Some(Digest::of(&copy));
        if self.copy_seen != now {
            self.copy_seen = now;
            let taken = self.consider(&copy);
            if matches!(taken, Some(Taken::Rejected(_))) {
                // The next tick writes the copy anew; what the person wrote is kept aside.
                let kept = self.dir.recovered().join("ralph_task.rejected.md");
                durable::make_dir(&self.dir.recovered())
                    .and_then(|()| durable::write(&kept, &copy))
                    .ok();
            }
            return taken;
        }
        let source = read(&self.source)?;
        let now = Some(Digest::of(&source));
        if self.source_seen == now {
            return None;
        }
        self.source_seen = now;
        self.consider(&source)
    }

    fn consider(&mut self, bytes: &[u8]) -> Option<Taken> {
        let report = lint::check(bytes);
        let usable = report.is_ok();
        let task = match report.task {
            Some(task) if usable => task,
            _ => {
                let first = report
                    .findings
                    .first()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                return Some(Taken::Rejected(first));
            }
        };
        let new_digest = digest(&task);
        if new_digest == self.digest {
            return None;
        }
        if let Some(key) = fixed_key(&self.task.contract, &task.contract) {
            return Some(Taken::Rejected(format!(
                "`{key}` cannot change while a run is under way"
            )));
        }
        let taken = Taken::Changed {
            changes: differences(&self.task, &task),
            reopened: reopened(&self.task, &task),
            digest: new_digest.clone(),
        };
        self.task = task;
        self.digest = new_digest;
        Some(taken)
    }
}

/// Returns a file's bytes, if there is one of a size that a task can have.
fn read(path: &Path) -> Option<Vec<u8>> {
    let size = std::fs::metadata(path).ok()?.len();
    (size <= MAX_BYTES)
        .then(|| std::fs::read(path).ok())
        .flatten()
}

/// Returns the first key that differs though it decides where the work happens.
fn fixed_key(old: &Contract, new: &Contract) -> Option<&'static str> {
    let pairs = [
        ("task_id", old.task_id == new.task_id),
        ("repo_url", old.repo_url == new.repo_url),
        ("base_branch", old.base_branch == new.base_branch),
        (
            "target_branch_prefix",
            old.target_branch_prefix == new.target_branch_prefix,
        ),
        (
            "target_branch_slug",
            old.target_branch_slug == new.target_branch_slug,
        ),
        (
            "sandbox_provider",
            old.sandbox_provider == new.sandbox_provider,
        ),
        ("engine", old.engine == new.engine),
    ];
    pairs
        .into_iter()
        .find(|(_, same)| !same)
        .map(|(key, _)| key)
}

fn differences(old: &TaskFile, new: &TaskFile) -> Vec<String> {
    let mut changes = Vec::new();
    let mut note = |key: &str, old: String, new: String| {
        if old != new {
            changes.push(format!("{key}: {old} → {new}"));
        }
    };
    let (a, b) = (old.contract.limits(), new.contract.limits());
    note(
        "max_iterations",
        show(a.max_iterations),
        show(b.max_iterations),
    );
    note(
        "max_wall_time_minutes",
        show(a.max_wall_time.map(|t| t.as_secs() / 60)),
        show(b.max_wall_time.map(|t| t.as_secs() / 60)),
    );
    note("max_cost_usd_estimate", show(a.max_cost), show(b.max_cost));
    note("max_tokens_total", show(a.max_tokens), show(b.max_tokens));
    note(
        "test_command",
        show(old.contract.test_command.clone()),
        show(new.contract.test_command.clone()),
    );
    note(
        "checkboxes",
        old.checkboxes.len().to_string(),
        new.checkboxes.len().to_string(),
    );
    if changes.is_empty() {
        changes.push("the text".into());
    }
    changes
}

fn show<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "not set".into(), |value| value.to_string())
}

fn reopened(old: &TaskFile, new: &TaskFile) -> BTreeSet<String> {
    let same_test = old.contract.verify_commands == new.contract.verify_commands;
    old.checkboxes
        .iter()
        .filter(|was| {
            let now = new.checkboxes.iter().find(|now| now.id == was.id);
            now.is_none_or(|now| {
                now.text != was.text
                    || now.verify != was.verify
                    || (now.verify.is_empty() && !same_test)
            })
        })
        .map(|was| was.id.clone())
        .collect()
}
