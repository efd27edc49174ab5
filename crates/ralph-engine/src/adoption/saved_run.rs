//! Restores the files and commits of a run from a snapshot under `refs/ralph/<task_id>`.

use std::fs;
use std::path::PathBuf;

use ralph_core::id::{CommitId, RunId};
use ralph_core::plan::RunPlan;
use ralph_core::state::RunState;

use crate::delivery::{SNAPSHOT_FILE, SnapshotManifest};
use crate::durable::{self, StoreError};
use crate::git::{BaseOrigin, GitError, HostGit, HostRepo, RepositoryMirror};
use crate::journal::{self, JournalError};
use crate::store::RunDir;

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedRunError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal in it cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It contains no journal.
    #[error("it contains no journal")]
    NoJournal,
    /// The contract in it cannot be used.
    #[error("{0}")]
    Contract(String),
    /// The journal does not end with the record that the snapshot names.
    #[error("its journal does not end with record {seq}, which the snapshot names")]
    OtherEnd { seq: u64 },
    /// The journal belongs to another run.
    #[error("its journal belongs to run `{0}`")]
    OtherRun(String),
    /// A commit of the run is missing.
    #[error("commit {commit} of branch `{branch}` is in no branch of `{repo}`")]
    NoCommit {
        commit: String,
        branch: String,
        repo: String,
    },
}

/// The files that a snapshot omits.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OmittedFiles {
    /// The first ones, the most important first.
    pub named: Vec<String>,
    /// The number of all.
    pub count: usize,
}

/// Writes the files of a snapshot into an empty run directory and checks its journal. Returns the state
/// of the run and the omitted files.
pub async fn restore_files(
    (dir, repo): (&RunDir, &HostRepo),
    (source, reference, commit): (&str, &str, &CommitId),
    run: &RunId,
) -> Result<(RunState, OmittedFiles), SavedRunError> {
    repo.fetch_snapshot(source, reference, commit).await?;
    repo.check_out_snapshot(commit, dir.root()).await?;
    dir.create()?;
    if !dir.journal().exists() {
        return Err(SavedRunError::NoJournal);
    }
    let state = dir.state()?;
    if state.plan.run != *run {
        return Err(SavedRunError::OtherRun(state.plan.run.to_string()));
    }
    let manifest_path: PathBuf = dir.root().join(SNAPSHOT_FILE);
    let mut missing = OmittedFiles::default();
    // Snapshots of older versions have no manifest.
    if let Some(bytes) = durable::read_if_present(&manifest_path)? {
        let manifest: Option<SnapshotManifest> = serde_json::from_slice(&bytes).unwrap_or(None);
        let last = journal::last_digest(&dir.journal())?;
        match manifest {
            Some(manifest) if manifest.seq == state.seq && manifest.sha256 == last => {
                missing = OmittedFiles {
                    count: manifest.left_out_count.max(manifest.left_out.len()),
                    named: manifest.left_out,
                };
            }
            Some(SnapshotManifest { seq, .. }) => return Err(SavedRunError::OtherEnd { seq }),
            None => return Err(SavedRunError::OtherEnd { seq: 0 }),
        }
        fs::remove_file(&manifest_path).map_err(StoreError::when("remove", &manifest_path))?;
    }
    Ok((state, missing))
}

/// Creates the run's repository with its branch at the base commit, which is fetched from `source`.
/// Idempotent.
pub async fn prepare_repository(
    git: &HostGit,
    (dir, repo): (&RunDir, &HostRepo),
    source: &str,
    plan: &RunPlan,
) -> Result<(), GitError> {
    let mirror = RepositoryMirror::new(git, &dir.mirrors(), source, &plan.base);
    mirror.add_base(source, &plan.run, &plan.base).await?;
    repo.prepare(BaseOrigin::Mirror(&mirror), &plan.base, &plan.branch)
        .await
}

/// Creates the run's repository with all its commits, from a branch or a remote-tracking branch of a
/// repository.
pub async fn restore_commits(
    git: &HostGit,
    (dir, repo): (&RunDir, &HostRepo),
    source: &str,
    state: &RunState,
) -> Result<(), SavedRunError> {
    let (plan, head) = (&state.plan, &state.head);
    prepare_repository(git, (dir, repo), source, plan).await?;
    if *head == plan.base {
        return Ok(());
    }
    repo.recover_from(source, &plan.branch).await?;
    repo.recover_from_remotes_of(source, &plan.branch).await?;
    if !repo.is_complete(&plan.base, head).await? {
        return Err(SavedRunError::NoCommit {
            commit: head.short().to_owned(),
            branch: plan.branch.clone(),
            repo: source.to_owned(),
        });
    }
    Ok(repo.set_branch(&plan.branch, head).await?)
}
