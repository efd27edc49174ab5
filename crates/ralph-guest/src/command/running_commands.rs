//! The running commands of this process.
//!
//! Adopting orphans is an attribute of the whole process, so the commands that adopted processes
//! may belong to are tracked for the whole process, too.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::mark::CommandMark;

static COMMANDS: Mutex<BTreeMap<CommandMark, Pid>> = Mutex::new(BTreeMap::new());

fn lock_commands() -> MutexGuard<'static, BTreeMap<CommandMark, Pid>> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a command with its first process.
pub(super) fn register(mark: CommandMark, first: Pid) {
    lock_commands().insert(mark, first);
}

/// Removes a command of which nothing is running any more.
pub(super) fn unregister(mark: CommandMark) {
    lock_commands().remove(&mark);
}

/// Returns whether a command with this mark is running.
#[cfg(target_os = "linux")]
pub(super) fn is_running(mark: CommandMark) -> bool {
    lock_commands().contains_key(&mark)
}

/// Returns whether a process is the first one of a command, whose exit status must be left to its
/// supervisor.
#[cfg(target_os = "linux")]
pub(super) fn is_leader(pid: Pid) -> bool {
    lock_commands().values().any(|first| *first == pid)
}

/// Returns the number of running commands.
#[cfg(target_os = "linux")]
pub(super) fn count() -> usize {
    lock_commands().len()
}
