//! The contract in force: the pinned task file, and the user's changes to it.
//!
//! The journal names the contract in force by its digest, and the text is stored under that digest.
//! Editing the file changes nothing, because in a local sandbox a command might have edited it. The
//! user puts a changed task file in force with `ralph task`, which records that in the journal.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ralph_core::id::{Digest, RunId};
use ralph_core::secret::Redactor;
use ralph_core::task::{Checkbox, Contract, TaskFile};

use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::git::OwnFiles;
use crate::store::RunDir;

/// The largest task file that is read.
const MAX_BYTES: u64 = 512 << 10;

/// The contract in force, and the files in which the user may change it.
pub struct PinnedTask {
    dir: RunDir,
    source: PathBuf,
    task: TaskFile,
    digest: Digest,
    source_digest: Option<Digest>,
    /// The digest of the run's own copy, unless the user has changed it.
    copy_digest: Option<Digest>,
    /// The text with the current ticks.
    text: String,
}

/// The result of a contract change.
#[derive(Debug)]
pub enum ContractUpdate {
    /// The new contract is in force.
    Applied {
        digest: Digest,
        /// The differences, for display.
        changes: Vec<String>,
        /// Boxes that lose their ticks: their text or verification changed, or they were removed.
        reopened: BTreeSet<String>,
    },
    /// It cannot be used, for this reason.
    Rejected(String),
}

/// Returns the digest that identifies a contract: of its text with all boxes open, independent of
/// line endings.
pub fn digest(task: &TaskFile) -> Digest {
    let text = task.with_ticks(&BTreeSet::new()).replace("\r\n", "\n");
    Digest::compute(text.trim_start_matches('\u{feff}').as_bytes())
}

impl PinnedTask {
    /// Pins a new run's contract.
    pub fn pin(dir: &RunDir, source: PathBuf, task: TaskFile) -> Result<Self, StoreError> {
        let digest = digest(&task);
        store_contract(dir, &digest, &task)?;
        let mut pinned = Self {
            dir: dir.clone(),
            source,
            task,
            digest: digest.clone(),
            source_digest: Some(digest),
            copy_digest: None,
            text: String::new(),
        };
        pinned.write_ticks(&BTreeSet::new())?;
        Ok(pinned)
    }

    /// Loads the contract of an existing run, if it is still the one that the journal names.
    /// `known` contains the contracts that were in force before.
    pub fn open(
        dir: &RunDir,
        source: PathBuf,
        in_force: &Digest,
        known: &[Digest],
    ) -> Result<Self, RunError> {
        let task = load_contract(dir, in_force)?;
        // A source that was in force before is the one that the run started from; only a new one is
        // a change.
        let source_now = read_with_digest(&source).map(|(_, digest)| digest);
        let source_seen = source_now.filter(|digest| known.contains(digest));
        // After a crash the ticks differ, or the previous contract is still present; any other
        // difference is an edit.
        let host = durable::read_if_present(&dir.contract())?.unwrap_or_default();
        let untouched = TaskFile::parse(&host)
            .is_ok_and(|task| *in_force == digest(&task) || known.contains(&digest(&task)));
        Ok(Self {
            dir: dir.clone(),
            source,
            digest: in_force.clone(),
            task,
            source_digest: source_seen,
            copy_digest: untouched.then(|| Digest::compute(&host)),
            text: String::new(),
        })
    }

    /// Returns the task.
    pub fn task(&self) -> &TaskFile {
        &self.task
    }

    /// Returns the machine-readable part of the task.
    pub fn contract(&self) -> &Contract {
        &self.task.contract
    }

    /// Returns whether the run's own files are part of its commits.
    pub fn own_files(&self) -> OwnFiles {
        if self.contract().commit_state {
            OwnFiles::Committed
        } else {
            OwnFiles::Excluded
        }
    }

    /// Returns the digest of the contract in force.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Writes the ticks into the run's copy and returns the text for the sandbox. An edited copy is
    /// left alone until the edit is reported.
    pub fn write_ticks(&mut self, ticked: &BTreeSet<String>) -> Result<String, StoreError> {
        self.text = self.task.with_ticks(ticked);
        let current = durable::read_if_present(&self.dir.contract())?;
        let current = current.map(|bytes| Digest::compute(&bytes));
        if current.is_none() || current == self.copy_digest {
            self.restore_copy()?;
        }
        Ok(self.text.clone())
    }

    /// Restores the run's own copy to the contract in force.
    fn restore_copy(&mut self) -> Result<(), StoreError> {
        let digest = Digest::compute(self.text.as_bytes());
        if self.copy_digest.as_ref() != Some(&digest) || !self.dir.contract().exists() {
            durable::write(&self.dir.contract(), self.text.as_bytes())?;
            self.copy_digest = Some(digest);
        }
        Ok(())
    }

    /// Puts a stored contract in force that the user has named.
    ///
    /// A text with a known secret is rejected: it would reach the sandbox, prompts and the saved
    /// state.
    pub fn apply(
        &mut self,
        wanted: &Digest,
        redactor: &Redactor,
    ) -> Result<ContractUpdate, StoreError> {
        let task = match load_contract(&self.dir, wanted) {
            Ok(task) => task,
            Err(RunError::Store(error)) => return Err(error),
            Err(error) => return Ok(ContractUpdate::Rejected(error.to_string())),
        };
        if *wanted == self.digest {
            return Ok(ContractUpdate::Rejected("it is already in force".into()));
        }
        if let Some(name) = secret_in(&task, redactor) {
            let why = format!("the text contains the value of `{name}`");
            return Ok(ContractUpdate::Rejected(why));
        }
        if let Some(key) = fixed_key(&self.task.contract, &task.contract) {
            return Ok(ContractUpdate::Rejected(format!(
                "`{key}` cannot change while a run is under way"
            )));
        }
        let update = ContractUpdate::Applied {
            changes: differences(&self.task, &task),
            reopened: reopened(&self.task, &task),
            digest: wanted.clone(),
        };
        self.task = task;
        self.digest = wanted.clone();
        Ok(update)
    }

    /// Returns the notices about edited files, one for each edit. None of the edits is in force;
    /// the run's own copy is restored.
    pub fn report_edits(
        &mut self,
        run: &RunId,
        redactor: &Redactor,
    ) -> Result<Vec<String>, StoreError> {
        let mut notices = Vec::new();
        notices.extend(self.report_edited_copy(run, redactor)?);
        notices.extend(self.report_edited_source(run));
        Ok(notices)
    }

    fn report_edited_copy(
        &mut self,
        run: &RunId,
        redactor: &Redactor,
    ) -> Result<Option<String>, StoreError> {
        let Ok(host) = std::fs::read(self.dir.contract()) else {
            return Ok(None);
        };
        let now = Digest::compute(&host);
        if self.copy_digest.as_ref() == Some(&now) {
            return Ok(None);
        }
        let aside = self.dir.rejected_contract();
        durable::write(&aside, &redactor.redact_bytes(&host))?;
        self.copy_digest = Some(now);
        self.restore_copy()?;
        let (copy, aside) = (self.dir.contract(), aside.display().to_string());
        Ok(Some(format!(
            "`{}` was edited, which has no effect; it was restored, and the edit is in `{aside}`: \
             `ralph task {run} {aside}` puts it in force",
            copy.display()
        )))
    }

    fn report_edited_source(&mut self, run: &RunId) -> Option<String> {
        let (bytes, now) = read_with_digest(&self.source)?;
        if self.source_digest.as_ref() == Some(&now) {
            return None;
        }
        self.source_digest = Some(now.clone());
        if now == self.digest {
            return None;
        }
        // A command in a `local` sandbox can write this file, too.
        let next = format!("if it is yours, `ralph task {run}` puts it in force");
        let (changes, next) = TaskFile::parse(&bytes).map_or_else(
            |_| {
                (
                    "it cannot be used".into(),
                    "`ralph lint` reports why".into(),
                )
            },
            |task| (differences(&self.task, &task).join(", "), next),
        );
        Some(format!(
            "the task file was edited, by you or by a command of this run, and the edit is not in force ({changes}): {next}"
        ))
    }
}

/// The result of comparing a changed task file with the contract in force.
#[derive(Debug, PartialEq, Eq)]
pub enum ContractProposal {
    /// It equals the contract in force.
    InForce,
    /// It changes this key, which is fixed.
    ChangesFixedKey(&'static str),
    /// It contains the secret of this name.
    ContainsSecret(String),
    /// It is stored, and can be put in force.
    New {
        contract: Digest,
        /// The differences, for display.
        changes: Vec<String>,
    },
}

/// Compares a changed task file with the contract in force, and stores it if it can be put in
/// force.
pub fn propose(
    dir: &RunDir,
    in_force: &Digest,
    task: &TaskFile,
    redactor: &Redactor,
) -> Result<ContractProposal, RunError> {
    let old = load_contract(dir, in_force)?;
    let contract = digest(task);
    if contract == *in_force {
        return Ok(ContractProposal::InForce);
    }
    if let Some(key) = fixed_key(&old.contract, &task.contract) {
        return Ok(ContractProposal::ChangesFixedKey(key));
    }
    if let Some(name) = secret_in(task, redactor) {
        return Ok(ContractProposal::ContainsSecret(name));
    }
    // Store it before the journal names it.
    store_contract(dir, &contract, task)?;
    let changes = differences(&old, task);
    Ok(ContractProposal::New { contract, changes })
}

/// Returns the name of a known secret in the text of a task.
fn secret_in(task: &TaskFile, redactor: &Redactor) -> Option<String> {
    redactor.find_known(task.with_ticks(&BTreeSet::new()).as_bytes())
}

/// Loads a stored contract, and checks that its content matches its digest.
pub fn load_contract(dir: &RunDir, named: &Digest) -> Result<TaskFile, RunError> {
    let path = dir.stored_contract(named);
    let bytes = std::fs::read(&path).map_err(StoreError::when("read", &path))?;
    match TaskFile::parse(&bytes) {
        Ok(task) if digest(&task) == *named => Ok(task),
        Ok(_) | Err(_) => Err(RunError::Contract(path.display().to_string())),
    }
}

/// Stores a contract under its digest.
fn store_contract(dir: &RunDir, digest: &Digest, task: &TaskFile) -> Result<(), StoreError> {
    let path = dir.stored_contract(digest);
    path.parent().map_or(Ok(()), durable::create_dir)?;
    let text = task.with_ticks(&BTreeSet::new());
    durable::write_shared(&path, text.as_bytes())
}

fn read_with_digest(path: &std::path::Path) -> Option<(Vec<u8>, Digest)> {
    // A task file that cannot be read is not an edit; its copy stays in force.
    let Ok(metadata) = std::fs::metadata(path) else {
        return None;
    };
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let Ok(bytes) = std::fs::read(path) else {
        return None;
    };
    // The digest of an unusable file is that of its bytes, so that it is reported only once.
    let digest =
        TaskFile::parse(&bytes).map_or_else(|_| Digest::compute(&bytes), |task| digest(&task));
    Some((bytes, digest))
}

/// Returns the first changed key that must stay fixed during a run.
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
        ("sandbox_image", old.sandbox_image == new.sandbox_image),
        (
            "sandbox_resources",
            old.sandbox_resources == new.sandbox_resources,
        ),
        (
            "model_profile_default",
            old.model_profile_default == new.model_profile_default,
        ),
        ("engine", old.engine == new.engine),
        ("agent", old.agent == new.agent),
        ("pr.enabled", old.pr.enabled == new.pr.enabled),
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
        display_or_unset(a.max_iterations),
        display_or_unset(b.max_iterations),
    );
    note(
        "max_wall_time_minutes",
        display_or_unset(a.max_wall_time.map(|t| t.as_secs() / 60)),
        display_or_unset(b.max_wall_time.map(|t| t.as_secs() / 60)),
    );
    note(
        "max_cost_usd_estimate",
        display_or_unset(a.max_cost),
        display_or_unset(b.max_cost),
    );
    note(
        "max_tokens_total",
        display_or_unset(a.max_tokens),
        display_or_unset(b.max_tokens),
    );
    note(
        "test_command",
        display_or_unset(old.contract.test_command.clone()),
        display_or_unset(new.contract.test_command.clone()),
    );
    note(
        "checkboxes",
        old.checkboxes.len().to_string(),
        new.checkboxes.len().to_string(),
    );
    note(
        "verify_commands",
        old.contract.verify_commands.join("; "),
        new.contract.verify_commands.join("; "),
    );
    note(
        "mode",
        old.contract.mode.as_str().to_owned(),
        new.contract.mode.as_str().to_owned(),
    );
    for now in &new.checkboxes {
        let was = old.checkbox(&now.id);
        let both =
            |get: fn(&Checkbox) -> String| (was.map_or_else(|| "none".into(), get), get(now));
        let (before, after) = both(|checkbox| checkbox.verify.join("; "));
        note(&format!("verify of {}", now.id), before, after);
        let (before, after) = both(|checkbox| checkbox.text.clone());
        note(&format!("box {}", now.id), before, after);
    }
    if changes.is_empty() {
        changes.push("the text".into());
    }
    changes
}

fn display_or_unset<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "not set".into(), |value| value.to_string())
}

fn reopened(old: &TaskFile, new: &TaskFile) -> BTreeSet<String> {
    let same_default = old.contract.default_box_commands() == new.contract.default_box_commands();
    old.checkboxes
        .iter()
        .filter(|was| {
            let now = new.checkboxes.iter().find(|now| now.id == was.id);
            now.is_none_or(|now| {
                now.text != was.text
                    || now.verify != was.verify
                    || (now.verify.is_empty() && !same_default)
            })
        })
        .map(|was| was.id.clone())
        .collect()
}
