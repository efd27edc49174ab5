//! Determines the status of a sandbox's run.

use std::time::Duration;

use jiff::Timestamp;
use ralph_core::id::RunId;
use ralph_core::ports::SandboxId;
use ralph_core::state::RunState;
use ralph_engine::journal;
use ralph_engine::store::{RunDir, RunLock};

use super::inventory::ListedSandbox;
use super::retention::{SandboxRunStatus, StateDirOwner};
use crate::providers::Providers;

/// Returns the directory of a sandbox's run, or `None` if it has no run here.
pub(super) fn run_dir(listed: &ListedSandbox, providers: &Providers) -> Option<RunDir> {
    let run = listed.labels.get("run").and_then(|id| RunId::parse(id));
    run.filter(|_| listed.state_dir_owner == StateDirOwner::Own)
        .map(|run| providers.state.run(&run))
}

/// Returns the status of a sandbox's run without locking it.
pub(super) fn inspect(listed: &ListedSandbox, providers: &Providers) -> SandboxRunStatus {
    let Some(dir) = run_dir(listed, providers) else {
        return SandboxRunStatus::NoRun;
    };
    if !dir.journal().exists() {
        SandboxRunStatus::Missing
    } else if is_written_by_newer_version(&dir) {
        SandboxRunStatus::Unreadable
    } else if dir.is_held() {
        SandboxRunStatus::Held
    } else {
        read_status(&dir, &listed.id, providers.clock.now())
    }
}

/// Locks the run of a sandbox so that no other process continues it, and returns its status.
pub(super) fn lock_and_inspect(
    listed: &ListedSandbox,
    providers: &Providers,
) -> (SandboxRunStatus, Option<RunLock>) {
    let Some(dir) = run_dir(listed, providers) else {
        return (SandboxRunStatus::NoRun, None);
    };
    if !dir.journal().exists() {
        return (SandboxRunStatus::Missing, None);
    }
    if is_written_by_newer_version(&dir) {
        return (SandboxRunStatus::Unreadable, None);
    }
    match dir.lock() {
        Ok(Some(lock)) => (
            read_status(&dir, &listed.id, providers.clock.now()),
            Some(lock),
        ),
        Ok(None) => (SandboxRunStatus::Held, None),
        Err(error) => {
            tracing::warn!(%error, "cannot lock the run of sandbox `{}`", listed.id);
            (SandboxRunStatus::Unreadable, None)
        }
    }
}

/// Returns whether a newer ralph wrote the run. Nothing in its directory is touched, not even the
/// lock.
fn is_written_by_newer_version(dir: &RunDir) -> bool {
    journal::refuse_newer(&dir.journal()).is_err()
}

fn read_status(dir: &RunDir, sandbox: &SandboxId, now: Timestamp) -> SandboxRunStatus {
    match dir.state() {
        Ok(state) => status_from_state(&state, sandbox, now),
        Err(error) => {
            tracing::warn!(%error, "cannot read the run of sandbox `{sandbox}`");
            SandboxRunStatus::Unreadable
        }
    }
}

fn status_from_state(state: &RunState, sandbox: &SandboxId, now: Timestamp) -> SandboxRunStatus {
    // A run whose last change lies in the future, after the clock was set back, counts as just changed.
    let idle = Duration::try_from(now.duration_since(state.updated_at)).unwrap_or(Duration::ZERO);
    if state.status.is_final() {
        SandboxRunStatus::Ended(idle)
    } else if state.sandbox.as_ref() == Some(sandbox) {
        SandboxRunStatus::Resumable(idle)
    } else {
        SandboxRunStatus::ResumableElsewhere
    }
}
