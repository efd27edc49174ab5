//! Finds out how the run of a sandbox stands.

use std::time::Duration;

use jiff::Timestamp;
use ralph_core::id::RunId;
use ralph_core::ports::SandboxId;
use ralph_core::state::RunState;
use ralph_engine::journal;
use ralph_engine::store::{RunDir, RunLock};

use super::keeper::Seen;
use super::rule::{Home, Standing};
use crate::wire::Wiring;

/// Returns the directory of a sandbox's run; none if it has no run here.
pub(super) fn run_dir(seen: &Seen, wiring: &Wiring) -> Option<RunDir> {
    let run = seen.labels.get("run").and_then(|id| RunId::parse(id));
    run.filter(|_| seen.home == Home::Ours)
        .map(|run| wiring.state.run(&run))
}

/// Tells how the run of a sandbox stands, without getting in anybody's way.
pub(super) fn look(seen: &Seen, wiring: &Wiring) -> Standing {
    let Some(dir) = run_dir(seen, wiring) else {
        return Standing::NoRun;
    };
    if !dir.journal().exists() {
        Standing::Gone
    } else if is_newer(&dir) {
        Standing::Unreadable
    } else if dir.is_held() {
        Standing::Held
    } else {
        read(&dir, &seen.id, wiring.clock.now())
    }
}

/// Holds the run of a sandbox so that nobody takes it up, and tells how it stands.
pub(super) fn hold(seen: &Seen, wiring: &Wiring) -> (Standing, Option<RunLock>) {
    let Some(dir) = run_dir(seen, wiring) else {
        return (Standing::NoRun, None);
    };
    if !dir.journal().exists() {
        return (Standing::Gone, None);
    }
    if is_newer(&dir) {
        return (Standing::Unreadable, None);
    }
    match dir.lock() {
        Ok(Some(lock)) => (read(&dir, &seen.id, wiring.clock.now()), Some(lock)),
        Ok(None) => (Standing::Held, None),
        Err(_) => (Standing::Unreadable, None),
    }
}

/// Returns whether a newer ralph wrote the run; its directory is left alone, even its lock.
fn is_newer(dir: &RunDir) -> bool {
    journal::refuse_newer(&dir.journal()).is_err()
}

fn read(dir: &RunDir, sandbox: &SandboxId, now: Timestamp) -> Standing {
    match dir.state() {
        Ok(state) => of_state(&state, sandbox, now),
        Err(_) => Standing::Unreadable,
    }
}

fn of_state(state: &RunState, sandbox: &SandboxId, now: Timestamp) -> Standing {
    let idle = Duration::try_from(now.duration_since(state.updated_at)).unwrap_or_default();
    if state.status.is_final() {
        Standing::Ended(idle)
    } else if state.sandbox.as_ref() == Some(sandbox) {
        Standing::Waiting(idle)
    } else {
        Standing::WaitingElsewhere
    }
}
