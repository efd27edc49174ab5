//! The running commands of this process.
//!
//! Adopting orphans is an attribute of the whole process, so the commands that adopted processes
//! may belong to are tracked for the whole process, too.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::mark::CommandMark;

static COMMANDS: Mutex<BTreeMap<CommandMark, Pid>> = Mutex::new(BTreeMap::new());

fn lock_commands() -> MutexGuard<'static, BTreeMap<CommandMark, Pid>> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the first process of a command and registers it.
///
/// The lock is held meanwhile, so that a sweep on another thread waits: it would treat a marked
/// process that is not registered as abandoned and kill it.
pub(super) fn start_registered<T>(
    mark: CommandMark,
    start: impl FnOnce() -> io::Result<(T, Pid)>,
) -> io::Result<(T, Pid)> {
    let mut commands = lock_commands();
    let (started, leader) = start()?;
    commands.insert(mark, leader);
    Ok((started, leader))
}

/// Removes a command whose processes have ended.
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
    lock_commands().values().any(|leader| *leader == pid)
}

/// Returns the number of running commands.
#[cfg(target_os = "linux")]
pub(super) fn count() -> usize {
    lock_commands().len()
}
