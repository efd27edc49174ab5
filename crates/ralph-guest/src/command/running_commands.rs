//! The commands that run right now, of this process.
//!
//! Adopting orphans is an attribute of the whole process, so what may be done to an adopted one
//! has to be known to the whole process too.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::mark::CommandMark;

static COMMANDS: Mutex<BTreeMap<CommandMark, Pid>> = Mutex::new(BTreeMap::new());

fn lock_commands() -> MutexGuard<'static, BTreeMap<CommandMark, Pid>> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a command runs, with this first process.
pub(super) fn register(mark: CommandMark, first: Pid) {
    lock_commands().insert(mark, first);
}

/// Says that nothing of a command runs any more.
pub(super) fn unregister(mark: CommandMark) {
    lock_commands().remove(&mark);
}

/// Tells whether a command with this mark runs.
#[cfg(target_os = "linux")]
pub(super) fn is_running(mark: CommandMark) -> bool {
    lock_commands().contains_key(&mark)
}

/// Tells whether a process is the first one of a command: its status belongs to whoever waits for it.
#[cfg(target_os = "linux")]
pub(super) fn is_leader(pid: Pid) -> bool {
    lock_commands().values().any(|first| *first == pid)
}

/// Returns how many commands run.
#[cfg(target_os = "linux")]
pub(super) fn count() -> usize {
    lock_commands().len()
}
