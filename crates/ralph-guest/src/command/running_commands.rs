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
/// A sweep on another thread waits until that is done. It would take a marked process that is not registered
/// for an abandoned one and kill it.
pub(super) fn start_registered<T>(
    mark: CommandMark,
    start: impl FnOnce() -> io::Result<(T, Pid)>,
) -> io::Result<(T, Pid)> {
    let mut commands = lock_commands();
    let (started, first) = start()?;
    commands.insert(mark, first);
    Ok((started, first))
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
