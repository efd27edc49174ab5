//! Finds and signals all processes of a command or of a sandbox.
//!
//! A process belongs to a command if it carries the command's mark, was started with the command's
//! variable, is in its process group, or descends from a process that belongs to it. Orphans are
//! adopted by this process, so they stay visible; if this process has no children, the search is
//! skipped.

use std::collections::{HashMap, HashSet};

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, getrlimit,
    kill_process, kill_process_group, prlimit, set_child_subreaper, setrlimit, waitid, waitpid,
};

use super::environment;
use super::mark::{CommandMark, SandboxName};
use super::procfs::{self, ProcessInfo};
use super::running_commands;
use crate::best_effort;

/// The owner of the processes to find.
#[derive(Debug, Clone, Copy)]
pub enum ProcessOwner {
    /// One command of this process, by its mark and first process.
    Command(CommandMark, Pid),
    /// A sandbox, including everything that any ralph has started in it.
    Sandbox(SandboxName),
}

/// Makes this process the parent of its orphaned descendants.
pub fn adopt_orphans() -> Result<(), Errno> {
    set_child_subreaper(Some(getpid()))
}

/// Sets a mark on a process that was just started.
pub(super) fn set_mark(pid: Pid, mark: CommandMark) {
    // Refused if ralph itself runs under a lower limit, and for processes of other users. The
    // processes can still be found by the variable, the group and the descent.
    best_effort(prlimit(Some(pid), Resource::Locks, mark_limit(mark)));
}

/// Sets a mark on this process, so that processes started from now on inherit it.
pub(super) fn adopt_mark(mark: CommandMark) {
    // Refused only under a lower limit, as above.
    best_effort(setrlimit(Resource::Locks, mark_limit(mark)));
}

fn mark_limit(mark: CommandMark) -> Rlimit {
    Rlimit {
        current: Some(mark.limit()),
        maximum: Some(mark.limit()),
    }
}

/// Returns whether this process has no children, with one system call.
pub(super) fn is_childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Signals everything that belongs to the owner and reaps exited processes. Returns the number of
/// processes found.
pub(super) fn sweep_once(owner: ProcessOwner, signal: Signal) -> usize {
    if signal == Signal::KILL && owns_all_visible(owner) {
        // As the first process of a container: one call ends every other process at the same
        // moment, however fast they fork.
        best_effort(kill_process_group(Pid::INIT, signal));
    }
    let processes = procfs::processes();
    let targets = owned_processes(owner, &processes);
    let (ended, running): (Vec<&ProcessInfo>, Vec<&ProcessInfo>) =
        targets.into_iter().partition(|process| process.is_zombie);
    if signal == Signal::KILL {
        // Stopped first, so that no process forks or restarts another while others exit.
        send_signal(&running, Signal::STOP);
    }
    send_signal(&running, signal);
    running.len() + reap(&ended)
}

/// Reaps the exited adopted processes of the owner.
pub(super) fn reap_ended(owner: ProcessOwner) {
    let processes = procfs::processes();
    let mut ended = owned_processes(owner, &processes);
    ended.retain(|process| process.is_zombie);
    reap(&ended);
}

/// Returns whether all other visible processes belong to the owner.
fn owns_all_visible(owner: ProcessOwner) -> bool {
    match owner {
        ProcessOwner::Command(..) => getpid() == Pid::INIT && running_commands::count() <= 1,
        ProcessOwner::Sandbox(_) => false,
    }
}

fn send_signal(targets: &[&ProcessInfo], signal: Signal) {
    let own_group = getpgrp();
    let groups: HashSet<Pid> = targets
        .iter()
        .filter_map(|process| process.group)
        .filter(|group| *group != own_group)
        .collect();
    // A group is signalled atomically, so no member can escape by forking. A process that cannot be
    // signalled has exited or belongs to another user; the next pass checks again.
    for group in groups {
        best_effort(kill_process_group(group, signal));
    }
    for process in targets {
        if process.group == Some(own_group) {
            best_effort(kill_process(process.pid, signal));
        }
    }
}

fn reap(ended: &[&ProcessInfo]) -> usize {
    let own = Some(getpid());
    ended
        .iter()
        .filter(|process| process.parent == own && !running_commands::is_leader(process.pid))
        .filter(|process| waitpid(Some(process.pid), WaitOptions::NOHANG).is_ok())
        .count()
}

fn owned_processes(owner: ProcessOwner, processes: &[ProcessInfo]) -> Vec<&ProcessInfo> {
    let parents: HashMap<Pid, Pid> = processes
        .iter()
        .filter_map(|process| Some((process.pid, process.parent?)))
        .collect();
    let own = getpid();
    let candidates: Vec<&ProcessInfo> = match owner {
        ProcessOwner::Command(..) => processes
            .iter()
            .filter(|process| ancestors(process.pid, &parents).contains(&own))
            .collect(),
        ProcessOwner::Sandbox(_) => {
            let own_ancestors = ancestors(own, &parents);
            processes
                .iter()
                .filter(|process| process.pid != own && !own_ancestors.contains(&process.pid))
                .collect()
        }
    };
    let directly_owned: HashSet<Pid> = candidates
        .iter()
        .filter(|process| is_directly_owned(owner, process))
        .map(|process| process.pid)
        .collect();
    let descends = |pid| {
        ancestors(pid, &parents)
            .iter()
            .any(|ancestor| directly_owned.contains(ancestor))
    };
    candidates
        .into_iter()
        .filter(|process| directly_owned.contains(&process.pid) || descends(process.pid))
        .collect()
}

/// Returns the ancestors of a process, nearest first.
fn ancestors(pid: Pid, parents: &HashMap<Pid, Pid>) -> Vec<Pid> {
    let mut ancestors = Vec::new();
    let mut current = pid;
    while let Some(parent) = parents.get(&current) {
        // The table is not an atomic snapshot, so a reused process ID can cause a cycle.
        if ancestors.contains(parent) {
            break;
        }
        ancestors.push(*parent);
        current = *parent;
    }
    ancestors
}

fn is_directly_owned(owner: ProcessOwner, process: &ProcessInfo) -> bool {
    let mark = procfs::read_mark(process.pid);
    match owner {
        ProcessOwner::Command(own, leader) => {
            owns_all_visible(owner)
                || process.group == Some(leader)
                || mark == Some(own)
                || procfs::has_variable(process.pid, &environment::command_variable(own))
                || is_abandoned(process, mark)
        }
        ProcessOwner::Sandbox(name) => {
            mark.is_some_and(|mark| mark.belongs_to(name))
                || procfs::has_variable(process.pid, &environment::sandbox_variable(name))
        }
    }
}

/// Returns whether an adopted process carries a mark without a supervisor, for example after a
/// ralph inside a command was killed. Direct children of this process carry its own limit.
fn is_abandoned(process: &ProcessInfo, mark: Option<CommandMark>) -> bool {
    let own_limit = getrlimit(Resource::Locks).maximum;
    process.parent == Some(getpid())
        && mark.is_some_and(|mark| {
            Some(mark.limit()) != own_limit && !running_commands::is_running(mark)
        })
}
