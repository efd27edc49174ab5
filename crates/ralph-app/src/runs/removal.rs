//! Removes the directory of a run together with its sandboxes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ralph_core::id::RunId;
use ralph_core::state::RunState;
use ralph_engine::durable::{self, StoreError};
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use super::shared_objects;
use crate::app::App;
use crate::error::AppError;
use crate::prune::RunSandboxes;
use crate::steering;

/// The size of a block in the metadata of a file.
const BLOCK_BYTES: u64 = 512;

/// The suffix of a directory that is being removed. It is no run any more.
pub(super) const REMOVED_SUFFIX: &str = "removed";

/// The runs that may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalGuard {
    /// Finished runs whose commits are in the user's repository.
    FinishedOnly,
    /// Every run that no process works on.
    Force,
}

/// A run that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RemovedRun {
    pub run: RunId,
    /// The disk space of its directory and its local sandboxes.
    pub bytes: u64,
    pub sandboxes: Vec<String>,
    /// The disk space of objects that were shared with other runs, by directory in `repos`, if this was
    /// the last of these runs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shared: BTreeMap<String, u64>,
}

/// Removes the sandboxes of a run that no process works on, then its directory.
pub async fn remove_run(
    query: &str,
    guard: RemovalGuard,
    app: &App,
) -> Result<RemovedRun, AppError> {
    let run = app.state_dir()?.find(query)?;
    let dir = app.find_run(run.as_str())?;
    let state = match (dir.state(), guard) {
        (Ok(state), _) => Some(state),
        (Err(_), RemovalGuard::Force) => None,
        (Err(error), RemovalGuard::FinishedOnly) => return Err(error.into()),
    };
    // Until the directory has another name, no other process can continue the run.
    let Some(_lock) = dir.lock()? else {
        return Err(AppError::refused(
            format!("cannot remove run `{run}`"),
            state.as_ref().map_or_else(
                || "a process works on it".to_owned(),
                steering::describe_owner,
            ),
            format!("stop it first: `ralph stop {run}`"),
        ));
    };
    if let (RemovalGuard::FinishedOnly, Some(state)) = (guard, &state)
        && let Some(why) = keep_reason(state)
    {
        return Err(AppError::refused(
            format!("cannot remove run `{run}`"),
            why,
            format!("remove it anyway with `ralph rm {run} --force`"),
        ));
    }
    let providers = app.providers()?;
    let container = state
        .as_ref()
        .and_then(|state| state.plan.container.as_ref());
    let sandboxes = RunSandboxes::find(&run, container, &providers).await?;
    let directories = sandboxes
        .names()
        .map(|name| providers.state.sandboxes().join(name));
    let bytes = disk_use(dir.root()) + directories.map(|path| disk_use(&path)).sum::<u64>();
    let sandboxes = sandboxes.remove().await?;
    remove_directory(&dir)?;
    let shared = shared_objects::remove_unused(&providers)
        .await
        .unwrap_or_else(|error| {
            // The run is removed; the next `ralph gc` removes these objects.
            tracing::warn!(%error, "cannot remove unused shared objects");
            BTreeMap::new()
        });
    Ok(RemovedRun {
        run,
        bytes,
        sandboxes,
        shared,
    })
}

/// Returns why a run is not removed without force.
pub(super) fn keep_reason(state: &RunState) -> Option<String> {
    if !state.status.is_final() {
        return Some(format!(
            "it is `{}` and not finished",
            state.status.as_str()
        ));
    }
    let is_delivered = state.head == state.plan.base || state.pushed.as_ref() == Some(&state.head);
    (!is_delivered && !state.discarded).then(|| {
        let head = state.head.short();
        format!("commit {head} is only in its directory")
    })
}

/// Removes the directory. It gets another name first, because a run without some of its files would
/// look damaged.
fn remove_directory(dir: &RunDir) -> Result<(), StoreError> {
    let removed = dir.root().with_extension(REMOVED_SUFFIX);
    durable::remove_tree(&removed)?;
    durable::rename(dir.root(), &removed)?;
    durable::remove_tree(&removed)
}

/// Returns the disk space of a directory. Links are not followed, and unreadable entries do not
/// count.
pub(super) fn disk_use(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut open: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        bytes += metadata.blocks() * BLOCK_BYTES;
        if metadata.is_dir()
            && let Ok(entries) = fs::read_dir(&path)
        {
            open.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    bytes
}
