//! The disk space of all runs, and the removal of old ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ralph_core::id::RunId;
use ralph_engine::durable::{self, StoreError};
use ralph_engine::setup::{SetupGarbage, SetupGarbageScope, SetupRunState, setup_disk_use};
use ralph_engine::store::{RunDir, StateDir};
use serde::Serialize;
use utoipa::ToSchema;

use super::removal::{self, REMOVED_SUFFIX, RemovalGuard, disk_use, keep_reason};
use super::shared_objects::{self, SharedObjects};
use super::summary::RunSummary;
use crate::app::App;
use crate::error::AppError;
use crate::format;
use crate::providers::{LocalLimits, Providers};

const SECONDS_PER_DAY: u64 = 86_400;

/// Whether old runs are really removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Old runs are removed.
    Remove,
    /// Old runs are only reported.
    DryRun,
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum GcVerdict {
    /// It is removed, or would be.
    Remove,
    /// It stays, for this reason.
    Keep(String),
    /// It could not be removed, for this reason.
    Failed(String),
}

/// A run and its disk space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GcEntry {
    #[schema(value_type = String)]
    pub run: RunId,
    pub task_id: Option<String>,
    #[schema(value_type = String)]
    pub status: &'static str,
    /// The disk space of its directory.
    pub bytes: u64,
    /// The disk space of its local sandboxes.
    pub sandbox_bytes: u64,
    /// The time of its last record.
    pub updated_at: Option<jiff::Timestamp>,
    #[serde(flatten)]
    pub verdict: GcVerdict,
}

/// The runs of the state directory, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GcReport {
    pub dry_run: bool,
    pub runs: Vec<GcEntry>,
    /// The objects that the runs of one repository share.
    pub shared: Vec<SharedObjects>,
    /// The disk space of all runs and shared objects before the removal.
    pub bytes: u64,
    /// The disk space of the runs and shared objects that are removed, or would be.
    pub removed_bytes: u64,
    /// The disk space of stored results of set-up, which all runs of a repository share.
    pub setup_bytes: u64,
    /// The disk space of the results of set-up that are removed, or would be: those of ended runs,
    /// expired ones, the least recently used above the limits, or all.
    pub removed_setup_bytes: u64,
}

/// Reports the disk space of each run, and removes finished runs that are older than a limit.
pub async fn collect_garbage(
    older_than: Duration,
    mode: GcMode,
    setup: SetupGarbageScope,
    app: &App,
) -> Result<GcReport, AppError> {
    let state = app.state_dir()?;
    let providers = app.providers()?;
    if mode == GcMode::Remove {
        remove_leftovers(&state)?;
        shared_objects::remove_leftovers(&providers)?;
    }
    let mut shared = SharedObjects::list(&providers).await?;
    let sandboxes = sandbox_use(&providers).await;
    let mut runs = Vec::new();
    for id in state.runs()? {
        let sandbox_bytes = sandboxes.get(id.as_str()).copied().unwrap_or_default();
        let mut entry = examine(&id, &state.run(&id), older_than, app);
        entry.sandbox_bytes = sandbox_bytes;
        if mode == GcMode::Remove && entry.verdict == GcVerdict::Remove {
            let removed = removal::remove_run(id.as_str(), RemovalGuard::FinishedOnly, app).await;
            if let Err(error) = removed {
                let parts: Vec<&str> = error.parts().collect();
                entry.verdict = GcVerdict::Failed(parts.join(" — "));
            }
        }
        runs.push(entry);
    }
    let (setup_bytes, removed_setup_bytes) = setup_use(&state, mode, setup)?;
    mark_unused(&mut shared, &runs);
    if mode == GcMode::Remove {
        // Also after the removal of a run, which removes those that it was the last to use.
        shared_objects::remove_unused(&providers).await?;
    }
    Ok(GcReport {
        setup_bytes,
        removed_setup_bytes,
        ..report(mode, runs, shared)
    })
}

/// Marks shared objects of which every run is removed.
fn mark_unused(shared: &mut [SharedObjects], runs: &[GcEntry]) {
    let is_removed = |run: &RunId| {
        let mut entries = runs.iter();
        entries.any(|entry| entry.run == *run && entry.verdict == GcVerdict::Remove)
    };
    for objects in shared {
        objects.removed = objects.runs.iter().all(is_removed);
    }
}

fn report(mode: GcMode, runs: Vec<GcEntry>, shared: Vec<SharedObjects>) -> GcReport {
    let size = |entry: &GcEntry| entry.bytes + entry.sandbox_bytes;
    let removed = runs
        .iter()
        .filter(|entry| entry.verdict == GcVerdict::Remove);
    let removed_shared = shared.iter().filter(|objects| objects.removed);
    let shared_bytes = |objects: &SharedObjects| objects.bytes;
    GcReport {
        dry_run: mode == GcMode::DryRun,
        bytes: runs.iter().map(size).sum::<u64>() + shared.iter().map(shared_bytes).sum::<u64>(),
        removed_bytes: removed.map(size).sum::<u64>()
            + removed_shared.map(shared_bytes).sum::<u64>(),
        runs,
        shared,
        setup_bytes: 0,
        removed_setup_bytes: 0,
    }
}

/// Returns the disk space of stored results of set-up, and the part that is removed, or would be.
fn setup_use(
    state: &StateDir,
    mode: GcMode,
    scope: SetupGarbageScope,
) -> Result<(u64, u64), AppError> {
    let failed = |source| StoreError {
        doing: "clean",
        path: state.setup_results(),
        source,
    };
    let run_state = |id: &RunId| {
        let dir = state.run(id);
        let is_open = || dir.state().is_ok_and(|run| keep_reason(&run).is_some());
        if dir.is_held() {
            SetupRunState::Working
        } else if is_open() {
            SetupRunState::Open
        } else {
            SetupRunState::Ended
        }
    };
    let bytes = setup_disk_use(state).map_err(failed)?;
    let garbage = SetupGarbage::find(state, scope, run_state).map_err(failed)?;
    if mode == GcMode::Remove {
        garbage.remove().map_err(failed)?;
    }
    Ok((bytes, garbage.bytes()))
}

fn examine(id: &RunId, dir: &RunDir, older_than: Duration, app: &App) -> GcEntry {
    let summary = RunSummary::read(id, dir);
    let keep = match dir.state() {
        Err(_) => Some(format!("it is `{}`", summary.status)),
        Ok(_) if dir.is_held() => Some("a process works on it".to_owned()),
        Ok(state) => keep_reason(&state).or_else(|| {
            let age = app.clock().now().duration_since(state.updated_at);
            // A time in the future, after the clock was set back, counts as now.
            let age = Duration::try_from(age).unwrap_or(Duration::ZERO);
            (age < older_than).then(|| {
                let limit = match older_than.as_secs() / SECONDS_PER_DAY {
                    0 => format::duration(older_than),
                    days => format::plural(days, "day", "days"),
                };
                format!("its last change is less than {limit} old")
            })
        }),
    };
    GcEntry {
        run: id.clone(),
        task_id: summary.task_id,
        status: summary.status,
        bytes: disk_use(dir.root()),
        sandbox_bytes: 0,
        updated_at: summary.updated_at,
        verdict: keep.map_or(GcVerdict::Remove, GcVerdict::Keep),
    }
}

/// Returns the disk space of local sandboxes by run.
async fn sandbox_use(providers: &Providers) -> BTreeMap<String, u64> {
    let provider = providers.local_provider(LocalLimits::default());
    let listed = provider.list().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list the local sandboxes");
        Vec::new()
    });
    let mut by_run = BTreeMap::new();
    for sandbox in listed {
        let Some(run) = sandbox.labels.get("run") else {
            continue;
        };
        let path = providers.state.sandboxes().join(&sandbox.id.0);
        *by_run.entry(run.clone()).or_default() += disk_use(&path);
    }
    by_run
}

/// Removes the rest of directories whose removal was interrupted.
fn remove_leftovers(state: &StateDir) -> Result<(), AppError> {
    let Ok(entries) = fs::read_dir(state.root().join("runs")) else {
        // Without runs there are no leftovers.
        return Ok(());
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let leftovers: Vec<PathBuf> = paths
        .filter(|path| path.extension() == Some(REMOVED_SUFFIX.as_ref()))
        .collect();
    for path in leftovers {
        durable::remove_tree(&path)?;
    }
    Ok(())
}
