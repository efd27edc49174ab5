//! Signals the process group of a command, where the system has no way to find more.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::mark::{Mark, Name};

/// Whose processes are looked for.
#[derive(Debug, Clone, Copy)]
#[expect(
    dead_code,
    reason = "the names say whose processes are meant; here only a group is used"
)]
pub enum ProcessOwner {
    /// One command of this process, by its mark and its first process.
    Command(Mark, Pid),
    /// A sandbox; what an earlier ralph has started in it cannot be found here.
    Sandbox(Name),
}

/// Does nothing: there are no orphans to adopt here.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it can fail where it does something"
)]
pub fn adopt_orphans() -> Result<(), Errno> {
    Ok(())
}

/// Does nothing: processes cannot be marked here.
pub(super) fn set_mark(_pid: Pid, _mark: Mark) {}

/// Does nothing: processes cannot be marked here.
pub(super) fn adopt_mark(_mark: Mark) {}

/// Returns false: only a signal tells whether a group has members.
pub(super) fn is_childless() -> bool {
    false
}

/// Signals the group of a command. Returns how many processes are known to be there, which is one
/// as long as the group exists.
pub(super) fn sweep_once(owner: ProcessOwner, signal: Signal) -> usize {
    match owner {
        ProcessOwner::Command(_, first) => usize::from(kill_process_group(first, signal).is_ok()),
        ProcessOwner::Sandbox(_) => 0,
    }
}

/// Does nothing: the system reaps orphans here.
pub(super) fn reap_ended(_owner: ProcessOwner) {}
