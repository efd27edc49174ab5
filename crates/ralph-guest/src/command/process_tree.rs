//! The processes of one command, from the first one to whatever it left behind.

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

/// How long to wait between two passes for killed processes to disappear.
const PASS_PAUSE: Duration = Duration::from_millis(1);
/// How long a sweep goes on at most; a process that a signal cannot end is left alone then.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(5);
/// How many passes in a row have to find nothing: one may miss a process born behind its back.
const EMPTY_PASSES: usize = 2;

/// A running command. Dropping it kills all of it.
#[derive(Debug)]
pub struct ProcessTree {
    child: Child,
    mark: CommandMark,
    leader: Pid,
    ended: bool,
}

impl ProcessTree {
    /// Starts a command, which is or makes itself the first of its own process group. Pipes that
    /// were created for it replace those of its own handle.
    pub(super) fn spawn(
        mut command: Command,
        pipes: Option<OwnedPipes>,
        mark: CommandMark,
        marking: Marking,
    ) -> io::Result<Self> {
        if marking == Marking::Inherited {
            sweep::adopt_mark(mark);
        }
        let child = command.spawn()?;
        let first = child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .ok_or_else(|| io::Error::other("the new process has no number"))?;
        running_commands::register(mark, first);
        if marking == Marking::AfterSpawn {
            sweep::set_mark(first, mark);
        }
        let mut tree = Self {
            child,
            mark,
            leader: first,
            ended: false,
        };
        if let Some(pipes) = pipes {
            pipes.attach(&mut tree.child)?;
        }
        Ok(tree)
    }

    /// Returns its first process, which leads its process group.
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

    /// Waits for the first process.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Asks every process to end.
    pub(super) fn terminate(&self) {
        sweep::sweep_once(self.owner(), Signal::TERM);
    }

    /// Kills every process and returns when none is left.
    pub(super) async fn kill(&self) {
        kill_processes(self.owner()).await;
    }

    /// Reaps orphans that have ended while the command goes on.
    pub(super) fn reap(&self) {
        sweep::reap_ended(self.owner());
    }

    /// Ends what the command left running; its first process has been waited for.
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
            // Nobody is left to wait for it, so the thread does. Killed processes disappear within
            // a millisecond or two.
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

/// Kills every process of an owner and returns when none is left.
pub async fn kill_processes(owner: ProcessOwner) {
    let mut sweep = KillSweep::new();
    while sweep.needs_another_pass(owner) {
        tokio::time::sleep(PASS_PAUSE).await;
    }
}

/// Killing, pass by pass, until nothing is found any more.
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

    /// Makes passes until it has to wait for something to die; tells whether it has to.
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
