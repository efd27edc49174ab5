//! Supervises one command: transfers its input and output and kills it at its limits.

use std::future::{Future, pending};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::outcome::{CommandEnd, CommandOutcome, CommandStream};
use super::pipes::{CommandInputSource, CommandOutputSink, InputPipe, OutputMeter, OutputPipe};
use super::process_tree::ProcessTree;
use crate::running_time;

/// The time that a command has to exit after SIGTERM.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);
/// The time that processes with open output may outlive the first process.
const LINGERING_GRACE: Duration = Duration::from_secs(1);
/// The time to drain the output after everything was killed, in case an unrelated process has it
/// open.
const DRAINING_GRACE: Duration = Duration::from_millis(500);
/// The interval for reaping exited orphans.
const REAP_INTERVAL: Duration = Duration::from_secs(5);

/// The input and limits of a command.
#[derive(Debug)]
pub struct CommandBounds<S, W> {
    /// The time before the command was started, from which its duration is measured.
    pub started: Instant,
    pub input: S,
    /// The time after which the whole tree is killed. Time during which this process is stopped
    /// does not count.
    pub timeout: Duration,
    /// The output in bytes after which the whole tree is killed.
    pub output_limit: u64,
    /// A future that may end the command early; see [`no_watchdog()`].
    pub watchdog: W,
}

/// A watchdog that never ends a command.
pub async fn no_watchdog() -> CommandEnd {
    pending().await
}

/// Supervises a started command until it ends.
pub async fn supervise<
    S: CommandInputSource,
    K: CommandOutputSink,
    W: Future<Output = CommandEnd> + Send,
>(
    mut tree: ProcessTree,
    bounds: CommandBounds<S, W>,
    sink: &mut K,
) -> io::Result<CommandOutcome> {
    let mut supervisor = Supervisor {
        input: InputPipe::new(tree.take_stdin(), bounds.input),
        stdout: OutputPipe::new(tree.take_stdout()),
        stderr: OutputPipe::new(tree.take_stderr()),
        tree,
        meter: OutputMeter::new(sink, bounds.output_limit),
        phase: Phase::Running,
        phase_end: running_time::now().saturating_add(bounds.timeout),
        deadline: Box::pin(sleep(bounds.timeout)),
        reaping: interval_at(Instant::now() + REAP_INTERVAL, REAP_INTERVAL),
        status: None,
        forced_end: None,
    };
    supervisor
        .reaping
        .set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watchdog = pin!(bounds.watchdog);
    while supervisor.is_active() {
        let is_watched = supervisor.forced_end.is_none();
        tokio::select! {
            biased;
            result = supervisor.step() => result?,
            end = &mut watchdog, if is_watched => supervisor.force_end(end).await,
        }
    }
    supervisor.tree.finish().await;
    Ok(CommandOutcome {
        ended: command_end(supervisor.forced_end, supervisor.status),
        duration: bounds.started.elapsed(),
        stdout_bytes: supervisor.meter.stdout,
        stderr_bytes: supervisor.meter.stderr,
        process_limit: false,
    })
}

/// The phase of a command, which determines the meaning of the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The deadline is the timeout.
    Running,
    /// SIGTERM was sent.
    Terminating,
    /// The first process has exited, but the output is still open.
    Lingering,
    /// Everything was killed, and the rest of the output is read.
    Draining,
    /// The rest of the output is no longer awaited.
    Abandoned,
}

struct Supervisor<'a, S, K> {
    tree: ProcessTree,
    input: InputPipe<S>,
    stdout: OutputPipe<ChildStdout>,
    stderr: OutputPipe<ChildStderr>,
    meter: OutputMeter<'a, K>,
    phase: Phase,
    /// The end of the phase, in running time.
    phase_end: Duration,
    /// Fires at `phase_end`, or earlier if this process was stopped.
    deadline: Pin<Box<Sleep>>,
    reaping: Interval,
    status: Option<ExitStatus>,
    /// The reason the command was killed.
    forced_end: Option<CommandEnd>,
}

impl<S: CommandInputSource, K: CommandOutputSink> Supervisor<'_, S, K> {
    fn is_active(&self) -> bool {
        let open = self.status.is_none() || self.stdout.is_open() || self.stderr.is_open();
        open && self.phase != Phase::Abandoned
    }

    /// Waits for the next event.
    async fn step(&mut self) -> io::Result<()> {
        let room = self.meter.sink.has_room();
        let open = self.stdout.is_open() || self.stderr.is_open();
        tokio::select! {
            bytes = self.stdout.next_chunk(), if room && self.stdout.is_open() => {
                self.meter.record(CommandStream::Stdout, bytes);
            }
            bytes = self.stderr.next_chunk(), if room && self.stderr.is_open() => {
                self.meter.record(CommandStream::Stderr, bytes);
            }
            () = self.meter.sink.wait_for_room(), if open && !room => {}
            () = self.input.feed(), if self.input.is_open() => {}
            status = self.tree.wait(), if self.status.is_none() => {
                self.status = Some(status?);
                if self.phase == Phase::Running {
                    self.enter_phase(Phase::Lingering, LINGERING_GRACE);
                }
            }
            () = &mut self.deadline => self.handle_deadline().await,
            _ = self.reaping.tick() => self.tree.reap(),
        }
        if self.meter.is_exceeded() && self.forced_end != Some(CommandEnd::OutputLimit) {
            self.force_end(CommandEnd::OutputLimit).await;
        }
        Ok(())
    }

    /// Kills the command for a reason other than its timeout.
    async fn force_end(&mut self, end: CommandEnd) {
        self.forced_end = Some(end);
        self.kill().await;
    }

    async fn handle_deadline(&mut self) {
        let left = self.phase_end.saturating_sub(running_time::now());
        if !left.is_zero() {
            self.deadline.as_mut().reset(Instant::now() + left);
            return;
        }
        match self.phase {
            Phase::Running => {
                self.forced_end = Some(CommandEnd::TimedOut);
                self.tree.terminate();
                self.enter_phase(Phase::Terminating, TERMINATION_GRACE);
            }
            Phase::Terminating | Phase::Lingering => self.kill().await,
            Phase::Draining | Phase::Abandoned => self.phase = Phase::Abandoned,
        }
    }

    async fn kill(&mut self) {
        self.tree.kill().await;
        self.enter_phase(Phase::Draining, DRAINING_GRACE);
    }

    fn enter_phase(&mut self, phase: Phase, grace: Duration) {
        self.phase = phase;
        self.phase_end = running_time::now() + grace;
        self.deadline.as_mut().reset(Instant::now() + grace);
    }
}

fn command_end(end: Option<CommandEnd>, status: Option<ExitStatus>) -> CommandEnd {
    let killed = rustix::process::Signal::KILL.as_raw();
    end.unwrap_or_else(|| match status {
        Some(status) => status.code().map_or_else(
            || CommandEnd::Signalled(status.signal().unwrap_or(killed)),
            CommandEnd::Exited,
        ),
        None => CommandEnd::Signalled(killed),
    })
}
