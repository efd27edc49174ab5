//! The processes of one command, including those it leaves behind.

use std::io;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::mark::{CommandMark, Marking};
use super::owned_pipes::OwnedPipes;
use super::running_commands;
use super::sweep::{self, ProcessOwner};
use crate::best_effort;

/// The pause between two passes while killed processes exit.
const PASS_PAUSE: Duration = Duration::from_millis(1);
/// The time limit of a sweep; processes that survive it are left alone.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of consecutive empty passes required, because one pass may miss a new process.
const EMPTY_PASSES: usize = 2;

/// A running command. Dropping it kills all its processes.
#[derive(Debug)]
pub struct ProcessTree {
    child: Child,
    mark: CommandMark,
    leader: Pid,
    ended: bool,
}

impl ProcessTree {
    /// Starts a command, which leads its own process group. Pipes created for it replace those of
    /// its handle.
    pub(super) fn spawn(
        mut command: Command,
        pipes: Option<OwnedPipes>,
        mark: CommandMark,
        marking: Marking,
    ) -> io::Result<Self> {
        let (child, leader) = running_commands::start_registered(mark, || {
            if marking == Marking::Inherited {
                sweep::adopt_mark(mark);
            }
            let child = command.spawn()?;
            let leader = child
                .id()
                .and_then(|id| Pid::from_raw(id.cast_signed()))
                .ok_or_else(|| io::Error::other("the new process has no ID"))?;
            Ok((child, leader))
        })?;
        if marking == Marking::AfterSpawn {
            sweep::set_mark(leader, mark);
        }
        let mut tree = Self {
            child,
            mark,
            leader,
            ended: false,
        };
        if let Some(pipes) = pipes {
            pipes.attach(&mut tree.child)?;
        }
        Ok(tree)
    }

    /// Returns the first process, which leads the process group.
    pub fn leader(&self) -> Pid {
        self.leader
    }

    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(super) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits for the first process to exit.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Sends SIGTERM to every process.
    pub(super) fn terminate(&self) {
        sweep::sweep_once(self.owner(), Signal::TERM);
    }

    /// Kills every process and returns when none is left, or after the time limit of a sweep.
    pub(super) async fn kill(&self) {
        kill_processes(self.owner()).await;
    }

    /// Reaps exited orphans while the command is running.
    pub(super) fn reap(&self) {
        sweep::reap_ended(self.owner());
    }

    /// Kills the remaining processes after the first one has exited.
    pub(super) async fn finish(mut self) {
        if !sweep::is_childless() {
            self.kill().await;
        }
        self.ended = true;
    }

    fn owner(&self) -> ProcessOwner {
        ProcessOwner::Command(self.mark, self.leader)
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.ended {
            // Nothing awaits this value any more, so the thread blocks. Killed processes exit
            // within a millisecond or two.
            let mut sweep = KillSweep::new();
            while sweep.needs_another_pass(self.owner()) {
                thread::sleep(PASS_PAUSE);
            }
            // Reaps the first process; an error means that it has been.
            best_effort(self.child.try_wait());
        }
        running_commands::unregister(self.mark);
    }
}

/// Kills every process of an owner and returns when none is left, or after five seconds.
pub async fn kill_processes(owner: ProcessOwner) {
    let mut sweep = KillSweep::new();
    while sweep.needs_another_pass(owner) {
        tokio::time::sleep(PASS_PAUSE).await;
    }
}

/// Kills processes in passes until none is found.
#[derive(Debug)]
struct KillSweep {
    started: Instant,
    empty_passes: usize,
}

impl KillSweep {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            empty_passes: 0,
        }
    }

    /// Runs passes until it has to wait for a process to exit; returns whether it has to.
    fn needs_another_pass(&mut self, owner: ProcessOwner) -> bool {
        while self.empty_passes < EMPTY_PASSES && self.started.elapsed() < SWEEP_TIMEOUT {
            if sweep::sweep_once(owner, Signal::KILL) > 0 {
                self.empty_passes = 0;
                return true;
            }
            self.empty_passes += 1;
        }
        false
    }
}
