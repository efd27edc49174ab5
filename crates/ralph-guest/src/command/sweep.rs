//! Finds the processes of a command or of a sandbox and signals them, wherever they went.
//!
//! A process belongs to a command if it carries the command's mark, was started with the command's
//! variable, is in its process group, or descends from one that belongs. Children that leave their
//! parent are adopted by this process, so they cannot get out of sight; without any child there is
//! nothing to look for.

use std::collections::{HashMap, HashSet};

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, getrlimit,
    kill_process, kill_process_group, prlimit, set_child_subreaper, setrlimit, waitid, waitpid,
};

use super::environment;
use super::live;
use super::mark::{Mark, Name};
use super::procfs::{self, Process};

/// Whose processes are looked for.
#[derive(Debug, Clone, Copy)]
pub enum Owner {
    /// One command of this process, by its mark and its first process.
    Command(Mark, Pid),
    /// A sandbox, with whatever any ralph has started in it.
    Sandbox(Name),
}

/// Makes this process the parent of orphans among its descendants.
pub fn adopt_orphans() -> Result<(), Errno> {
    set_child_subreaper(Some(getpid()))
}

/// Puts a mark on a process that has just been started.
pub(super) fn put_mark(pid: Pid, mark: Mark) {
    // Refused where ralph itself runs under a lower limit, and for processes of other users. The
    // variable, the group and the descent are left to find the processes by.
    prlimit(Some(pid), Resource::Locks, limit(mark)).ok();
}

/// Takes a mark on, so that what this process starts from now on is born with it.
pub(super) fn take_on(mark: Mark) {
    // Refused only under a lower limit, as above.
    setrlimit(Resource::Locks, limit(mark)).ok();
}

fn limit(mark: Mark) -> Rlimit {
    Rlimit {
        current: Some(mark.limit()),
        maximum: Some(mark.limit()),
    }
}

/// Tells whether this process has no child at all, which needs one system call.
pub(super) fn is_childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Signals everything that belongs to the owner and reaps what has ended. Returns how many
/// processes there still were.
pub(super) fn pass(owner: Owner, signal: Signal) -> usize {
    if signal == Signal::KILL && is_alone(owner) {
        // As the first process of a container: one call ends every other process at the same
        // moment, however fast they fork.
        kill_process_group(Pid::INIT, signal).ok();
    }
    let processes = procfs::processes();
    let belonging = belonging(owner, &processes);
    let (ended, running): (Vec<&Process>, Vec<&Process>) =
        belonging.into_iter().partition(|process| process.ended);
    if signal == Signal::KILL {
        // Stopped first, so that none forks or restarts another while the others die.
        send(&running, Signal::STOP);
    }
    send(&running, signal);
    running.len() + reap(&ended)
}

/// Reaps the adopted processes of the owner that have ended.
pub(super) fn reap_ended(owner: Owner) {
    let processes = procfs::processes();
    let mut belonging = belonging(owner, &processes);
    belonging.retain(|process| process.ended);
    reap(&belonging);
}

/// Tells whether all other processes that this one can see are the owner's.
fn is_alone(owner: Owner) -> bool {
    match owner {
        Owner::Command(..) => getpid() == Pid::INIT && live::count() <= 1,
        Owner::Sandbox(_) => false,
    }
}

fn send(targets: &[&Process], signal: Signal) {
    let own_group = getpgrp();
    let groups: HashSet<Pid> = targets
        .iter()
        .filter_map(|process| process.group)
        .filter(|group| *group != own_group)
        .collect();
    // A whole group gets a signal at once: no member can fork itself out of it. Whatever fails
    // here has ended meanwhile or is not ours to signal; the next pass looks again.
    for group in groups {
        kill_process_group(group, signal).ok();
    }
    for process in targets {
        if process.group == Some(own_group) {
            kill_process(process.pid, signal).ok();
        }
    }
}

fn reap(ended: &[&Process]) -> usize {
    let own = Some(getpid());
    ended
        .iter()
        .filter(|process| process.parent == own && !live::is_first(process.pid))
        .filter(|process| waitpid(Some(process.pid), WaitOptions::NOHANG).is_ok())
        .count()
}

fn belonging(owner: Owner, processes: &[Process]) -> Vec<&Process> {
    let parents: HashMap<Pid, Pid> = processes
        .iter()
        .filter_map(|process| Some((process.pid, process.parent?)))
        .collect();
    let own = getpid();
    let candidates: Vec<&Process> = match owner {
        Owner::Command(..) => processes
            .iter()
            .filter(|process| ancestors(process.pid, &parents).contains(&own))
            .collect(),
        Owner::Sandbox(_) => {
            let above = ancestors(own, &parents);
            processes
                .iter()
                .filter(|process| process.pid != own && !above.contains(&process.pid))
                .collect()
        }
    };
    let evident: HashSet<Pid> = candidates
        .iter()
        .filter(|process| is_evident(owner, process))
        .map(|process| process.pid)
        .collect();
    let descends = |pid| {
        ancestors(pid, &parents)
            .iter()
            .any(|above| evident.contains(above))
    };
    candidates
        .into_iter()
        .filter(|process| evident.contains(&process.pid) || descends(process.pid))
        .collect()
}

/// Returns the processes above one, nearest first.
fn ancestors(pid: Pid, parents: &HashMap<Pid, Pid>) -> Vec<Pid> {
    let mut above = Vec::new();
    let mut at = pid;
    while let Some(parent) = parents.get(&at) {
        // The table was not read in one moment: a number that was given away again can close a circle.
        if above.contains(parent) {
            break;
        }
        above.push(*parent);
        at = *parent;
    }
    above
}

fn is_evident(owner: Owner, process: &Process) -> bool {
    let mark = procfs::mark(process.pid);
    match owner {
        Owner::Command(own, first) => {
            is_alone(owner)
                || process.group == Some(first)
                || mark == Some(own)
                || procfs::has_variable(process.pid, &environment::command_variable(own))
                || is_abandoned(process, mark)
        }
        Owner::Sandbox(name) => {
            mark.is_some_and(|mark| mark.is_of(name))
                || procfs::has_variable(process.pid, &environment::sandbox_variable(name))
        }
    }
}

/// Tells whether an adopted process carries a mark that nobody answers for, as when a ralph that
/// ran inside a command was killed. The children of this process itself carry its own limit.
fn is_abandoned(process: &Process, mark: Option<Mark>) -> bool {
    let own_limit = getrlimit(Resource::Locks).maximum;
    process.parent == Some(getpid())
        && mark.is_some_and(|mark| Some(mark.limit()) != own_limit && !live::has(mark))
}
