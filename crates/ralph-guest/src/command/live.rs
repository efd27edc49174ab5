//! The commands that run right now, of this process.
//!
//! Adopting orphans is an attribute of the whole process, so what may be done to an adopted one
//! has to be known to the whole process too.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::mark::Mark;

static COMMANDS: Mutex<BTreeMap<Mark, Pid>> = Mutex::new(BTreeMap::new());

fn commands() -> MutexGuard<'static, BTreeMap<Mark, Pid>> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a command runs, with this first process.
pub(super) fn enter(mark: Mark, first: Pid) {
    commands().insert(mark, first);
}

/// Says that nothing of a command runs any more.
pub(super) fn leave(mark: Mark) {
    commands().remove(&mark);
}

/// Tells whether a command with this mark runs.
#[cfg(target_os = "linux")]
pub(super) fn has(mark: Mark) -> bool {
    commands().contains_key(&mark)
}

/// Tells whether a process is the first one of a command: its status belongs to whoever waits for it.
#[cfg(target_os = "linux")]
pub(super) fn is_first(pid: Pid) -> bool {
    commands().values().any(|first| *first == pid)
}

/// Returns how many commands run.
#[cfg(target_os = "linux")]
pub(super) fn count() -> usize {
    commands().len()
}
