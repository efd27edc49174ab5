//! Runs one command: feeds it, takes its output, and ends it when its time is up.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use ralph_core::ports::{Ended, ExecOutcome, OutputSink, Stream};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::pipes::{Input, Meter, Output};
use super::tree::Tree;

/// How long a command may take to end after it was asked to.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);
/// How long processes that hold the output open may outlive the first one.
const LINGERING_GRACE: Duration = Duration::from_secs(1);
/// How long the output may stay open when everything is killed, because a stranger holds it.
const DRAINING_GRACE: Duration = Duration::from_millis(500);
/// How often orphans that have ended are reaped while the command goes on.
const REAP_INTERVAL: Duration = Duration::from_secs(5);

/// What a command gets and may use up.
#[derive(Debug)]
pub(super) struct Bounds {
    /// When it began to be started.
    pub(super) started: Instant,
    pub(super) input: Vec<u8>,
    pub(super) timeout: Duration,
    pub(super) output_limit: u64,
}

/// Sees a started command to its end.
pub(super) async fn attend(
    mut tree: Tree,
    bounds: Bounds,
    sink: &mut dyn OutputSink,
) -> io::Result<ExecOutcome> {
    let mut attendance = Attendance {
        input: Input::new(tree.take_stdin(), bounds.input),
        stdout: Output::new(tree.take_stdout()),
        stderr: Output::new(tree.take_stderr()),
        tree,
        meter: Meter::new(sink, bounds.output_limit),
        phase: Phase::Running,
        deadline: Box::pin(sleep(bounds.timeout)),
        reaping: interval_at(Instant::now() + REAP_INTERVAL, REAP_INTERVAL),
        status: None,
        cut: None,
    };
    attendance
        .reaping
        .set_missed_tick_behavior(MissedTickBehavior::Delay);
    while attendance.is_going_on() {
        attendance.step().await?;
    }
    attendance.tree.end().await;
    Ok(ExecOutcome {
        ended: ended(attendance.cut, attendance.status),
        duration: bounds.started.elapsed(),
        stdout_bytes: attendance.meter.stdout,
        stderr_bytes: attendance.meter.stderr,
    })
}

/// Where a command stands, which decides what the deadline means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It runs; the deadline is its timeout.
    Running,
    /// It was asked to end.
    Terminating,
    /// Its first process has ended by itself, but something still holds the output.
    Lingering,
    /// All of it was killed; what is left in the pipes is taken.
    Draining,
    /// Nothing more is waited for.
    Abandoned,
}

struct Attendance<'a> {
    tree: Tree,
    input: Input,
    stdout: Output<ChildStdout>,
    stderr: Output<ChildStderr>,
    meter: Meter<'a>,
    phase: Phase,
    deadline: Pin<Box<Sleep>>,
    reaping: Interval,
    status: Option<ExitStatus>,
    /// Why it was not left to end by itself.
    cut: Option<Ended>,
}

impl Attendance<'_> {
    fn is_going_on(&self) -> bool {
        let open = self.status.is_none() || self.stdout.is_open() || self.stderr.is_open();
        open && self.phase != Phase::Abandoned
    }

    /// Waits for whatever happens next.
    async fn step(&mut self) -> io::Result<()> {
        tokio::select! {
            bytes = self.stdout.next(), if self.stdout.is_open() => {
                self.meter.take(Stream::Stdout, bytes);
            }
            bytes = self.stderr.next(), if self.stderr.is_open() => {
                self.meter.take(Stream::Stderr, bytes);
            }
            () = self.input.feed(), if self.input.is_open() => {}
            status = self.tree.wait(), if self.status.is_none() => {
                self.status = Some(status?);
                if self.phase == Phase::Running {
                    self.enter(Phase::Lingering, LINGERING_GRACE);
                }
            }
            () = &mut self.deadline => self.deadline_passed().await,
            _ = self.reaping.tick() => self.tree.reap(),
        }
        if self.meter.is_over() && self.cut != Some(Ended::OutputLimit) {
            self.cut = Some(Ended::OutputLimit);
            self.kill().await;
        }
        Ok(())
    }

    async fn deadline_passed(&mut self) {
        match self.phase {
            Phase::Running => {
                self.cut = Some(Ended::TimedOut);
                self.tree.terminate();
                self.enter(Phase::Terminating, TERMINATION_GRACE);
            }
            Phase::Terminating | Phase::Lingering => self.kill().await,
            Phase::Draining | Phase::Abandoned => self.phase = Phase::Abandoned,
        }
    }

    async fn kill(&mut self) {
        self.tree.kill().await;
        self.enter(Phase::Draining, DRAINING_GRACE);
    }

    fn enter(&mut self, phase: Phase, grace: Duration) {
        self.phase = phase;
        self.deadline.as_mut().reset(Instant::now() + grace);
    }
}

fn ended(cut: Option<Ended>, status: Option<ExitStatus>) -> Ended {
    let killed = rustix::process::Signal::KILL.as_raw();
    cut.unwrap_or_else(|| match status {
        Some(status) => status.code().map_or_else(
            || Ended::Signalled(status.signal().unwrap_or(killed)),
            Ended::Exited,
        ),
        None => Ended::Signalled(killed),
    })
}
