//! Finds the runs whose files differ from the index.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use ralph_core::id::RunId;
use ralph_engine::durable::StoreError;
use ralph_engine::store::StateDir;

use super::journal_file::JournalFile;
use super::tracked_run::{RunUpdate, TrackedRun, describe};

/// The runs that the index knows.
pub(super) type TrackedRuns = BTreeMap<RunId, TrackedRun>;

/// Which runs are inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanScope {
    /// The known runs that have not ended.
    Unfinished,
    /// All directories of runs.
    All,
}

/// The differences between the files and the index.
#[derive(Debug, Default)]
pub(super) struct ChangedRuns {
    pub(super) changed: Vec<ChangedRun>,
    pub(super) removed: Vec<RunId>,
}

/// A run that the index does not know in its current form.
#[derive(Debug)]
pub(super) struct ChangedRun {
    id: RunId,
    sort_key: String,
    file: JournalFile,
}

/// Returns when a run was last created or removed; none if that is unknown.
pub(super) fn listing_time(state: &StateDir) -> Option<SystemTime> {
    let modified = fs::metadata(state.all_runs()).and_then(|metadata| metadata.modified());
    modified.into_iter().next()
}

/// Compares the files with the index; no journal is read.
pub(super) fn find_changes(
    state: &StateDir,
    runs: &TrackedRuns,
    scope: ScanScope,
) -> Result<ChangedRuns, StoreError> {
    let mut changes = ChangedRuns::default();
    match scope {
        ScanScope::Unfinished => {
            let unfinished = runs.iter().filter(|(_, run)| !run.ended);
            for (id, run) in unfinished {
                compare(state, (&run.sort_key, id), Some(run), &mut changes)?;
            }
        }
        ScanScope::All => {
            let existing = state.runs_by_creation()?;
            for (sort_key, id) in &existing {
                compare(state, (sort_key, id), runs.get(id), &mut changes)?;
            }
            let mut ids: Vec<&RunId> = existing.iter().map(|(_, id)| id).collect();
            ids.sort();
            let is_gone = |id: &&RunId| ids.binary_search(id).is_err();
            changes.removed.extend(runs.keys().filter(is_gone).cloned());
        }
    }
    Ok(changes)
}

fn compare(
    state: &StateDir,
    (sort_key, id): (&str, &RunId),
    tracked: Option<&TrackedRun>,
    changes: &mut ChangedRuns,
) -> Result<(), StoreError> {
    let dir = state.run(id);
    let journal = dir.journal();
    let file = JournalFile::inspect(&journal).map_err(StoreError::when("inspect", &journal))?;
    let Some(file) = file else {
        if tracked.is_some() {
            changes.removed.push(id.clone());
        }
        return Ok(());
    };
    let is_current =
        tracked.is_some_and(|run| run.sort_key == sort_key && !run.has_changed(&dir, &file));
    if !is_current {
        changes.changed.push(ChangedRun {
            id: id.clone(),
            sort_key: sort_key.to_owned(),
            file,
        });
    }
    Ok(())
}

/// Reads and describes changed runs.
pub(super) fn describe_changes(
    state: &StateDir,
    runs: &mut TrackedRuns,
    changed: &[ChangedRun],
) -> Vec<RunUpdate> {
    let mut updates = Vec::with_capacity(changed.len());
    for ChangedRun { id, sort_key, file } in changed {
        let (tracked, update) = describe((id, sort_key), &state.run(id), *file, runs.remove(id));
        runs.insert(id.clone(), tracked);
        updates.push(update);
    }
    updates
}
