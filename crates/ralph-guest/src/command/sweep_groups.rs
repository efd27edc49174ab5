//! Signals the process group of a command, on systems that cannot find other processes.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::mark::{CommandMark, SandboxName};

/// The owner of the processes to find.
#[derive(Debug, Clone, Copy)]
#[expect(
    dead_code,
    reason = "the variants match those on Linux; only the group is used here"
)]
pub enum ProcessOwner {
    /// One command of this process, by its mark and first process.
    Command(CommandMark, Pid),
    /// A sandbox; processes of an earlier ralph cannot be found here.
    Sandbox(SandboxName),
}

/// Does nothing: there are no orphans to adopt here.
#[expect(clippy::unnecessary_wraps, reason = "the Linux version can fail")]
pub fn adopt_orphans() -> Result<(), Errno> {
    Ok(())
}

/// Does nothing: processes cannot be marked here.
pub(super) fn set_mark(_pid: Pid, _mark: CommandMark) {}

/// Does nothing: processes cannot be marked here.
pub(super) fn adopt_mark(_mark: CommandMark) {}

/// Returns false: only a signal shows whether a group has members.
pub(super) fn is_childless() -> bool {
    false
}

/// Signals the group of a command. Returns the number of known processes: one while the group
/// exists.
pub(super) fn sweep_once(owner: ProcessOwner, signal: Signal) -> usize {
    match owner {
        ProcessOwner::Command(_, leader) => usize::from(kill_process_group(leader, signal).is_ok()),
        ProcessOwner::Sandbox(_) => 0,
    }
}

/// Does nothing: the system reaps orphans here.
pub(super) fn reap_ended(_owner: ProcessOwner) {}
