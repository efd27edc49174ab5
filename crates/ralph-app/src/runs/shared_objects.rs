//! The disk space of the objects that the runs of one repository share, and their removal with the last
//! of these runs.

use std::collections::BTreeMap;

use ralph_core::id::RunId;
use ralph_engine::durable;
use ralph_engine::git::{GitError, MirrorRemoval, RepositoryMirror};
use ralph_engine::journal::RunOutline;
use serde::Serialize;
use utoipa::ToSchema;

use super::removal::{REMOVED_SUFFIX, disk_use};
use crate::error::AppError;
use crate::providers::Providers;

/// The shared objects of one repository's runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SharedObjects {
    /// The name of their directory in `repos`.
    pub name: String,
    /// The repository, if a run names it.
    pub repo: Option<String>,
    /// The runs that borrow from it.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
    pub bytes: u64,
    /// Whether they are removed, or would be, because no run is left.
    pub removed: bool,
}

impl SharedObjects {
    /// Returns the shared objects of all repositories.
    pub(super) async fn list(providers: &Providers) -> Result<Vec<Self>, AppError> {
        let state = &providers.state;
        let mut listed = Vec::new();
        for mirror in RepositoryMirror::list(&providers.git()?, &state.mirrors())? {
            let runs = mirror
                .users(&state.all_runs())
                .await
                .map_err(|error| failed(&error))?;
            let repo = runs.iter().find_map(|run| {
                let outline = RunOutline::read(&state.run(run).journal());
                outline.repo
            });
            listed.push(Self {
                name: directory_name(&mirror),
                repo,
                bytes: mirror_use(&mirror)?,
                removed: runs.is_empty(),
                runs,
            });
        }
        Ok(listed)
    }

    /// Returns the repository, or the directory of the objects.
    pub fn label(&self) -> &str {
        self.repo.as_deref().unwrap_or(&self.name)
    }
}

/// Removes the shared objects that no run borrows any more. Returns their disk space by directory.
pub(super) async fn remove_unused(
    providers: &Providers,
) -> Result<BTreeMap<String, u64>, AppError> {
    let state = &providers.state;
    let mut removed = BTreeMap::new();
    for mirror in RepositoryMirror::list(&providers.git()?, &state.mirrors())? {
        let bytes = mirror_use(&mirror)?;
        let removal = mirror.remove_if_unused(&state.all_runs()).await;
        match removal.map_err(|error| failed(&error))? {
            MirrorRemoval::Removed => removed.insert(directory_name(&mirror), bytes),
            MirrorRemoval::Kept => None,
        };
    }
    Ok(removed)
}

/// Removes the rest of shared objects whose removal was interrupted.
pub(super) fn remove_leftovers(providers: &Providers) -> Result<(), AppError> {
    let Ok(entries) = std::fs::read_dir(providers.state.mirrors()) else {
        // Without shared objects there are no leftovers.
        return Ok(());
    };
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.extension() == Some(REMOVED_SUFFIX.as_ref())) {
        durable::remove_tree(&path)?;
    }
    Ok(())
}

/// Returns the disk space of a mirror and of the damaged ones that it replaced.
fn mirror_use(mirror: &RepositoryMirror) -> Result<u64, AppError> {
    let leftovers = mirror.leftovers()?;
    let bytes = leftovers.iter().map(|path| disk_use(path)).sum::<u64>();
    Ok(bytes + disk_use(mirror.path()))
}

fn directory_name(mirror: &RepositoryMirror) -> String {
    let name = mirror.path().file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn failed(error: &GitError) -> AppError {
    let hint = error.hint();
    AppError::runtime(
        "cannot inspect the objects that runs share",
        error.to_string(),
        hint,
    )
}
