//! Runs one command: feeds it, takes its output, and ends it when its time is up.

use std::future::{Future, pending};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::ended::{Ended, Outcome, Stream};
use super::pipes::{Input, Meter, Output, Sink, Source};
use super::tree::Tree;
use crate::running_time;

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
pub struct Bounds<S, W> {
    /// When it began to be started.
    pub started: Instant,
    /// What it reads.
    pub input: S,
    /// When the whole tree is killed. Time during which this process is stopped does not count.
    pub timeout: Duration,
    /// How many bytes it may print before the whole tree is killed.
    pub output_limit: u64,
    /// Something else that may end it; see [`never()`].
    pub warden: W,
}

/// A warden that never ends a command.
pub async fn never() -> Ended {
    pending().await
}

/// Sees a started command to its end.
pub async fn attend<S: Source, K: Sink, W: Future<Output = Ended> + Send>(
    mut tree: Tree,
    bounds: Bounds<S, W>,
    sink: &mut K,
) -> io::Result<Outcome> {
    let mut attendance = Attendance {
        input: Input::new(tree.take_stdin(), bounds.input),
        stdout: Output::new(tree.take_stdout()),
        stderr: Output::new(tree.take_stderr()),
        tree,
        meter: Meter::new(sink, bounds.output_limit),
        phase: Phase::Running,
        due: running_time::now().saturating_add(bounds.timeout),
        deadline: Box::pin(sleep(bounds.timeout)),
        reaping: interval_at(Instant::now() + REAP_INTERVAL, REAP_INTERVAL),
        status: None,
        cut: None,
    };
    attendance
        .reaping
        .set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut warden = pin!(bounds.warden);
    while attendance.is_going_on() {
        let watched = attendance.cut.is_none();
        tokio::select! {
            biased;
            stepped = attendance.step() => stepped?,
            cut = &mut warden, if watched => attendance.cut_off(cut).await,
        }
    }
    attendance.tree.end().await;
    Ok(Outcome {
        ended: ended(attendance.cut, attendance.status),
        duration: bounds.started.elapsed(),
        stdout_bytes: attendance.meter.stdout,
        stderr_bytes: attendance.meter.stderr,
        process_limit: false,
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

struct Attendance<'a, S, K> {
    tree: Tree,
    input: Input<S>,
    stdout: Output<ChildStdout>,
    stderr: Output<ChildStderr>,
    meter: Meter<'a, K>,
    phase: Phase,
    /// The running time at which the phase ends.
    due: Duration,
    /// Fires at that time, or earlier if this process was stopped.
    deadline: Pin<Box<Sleep>>,
    reaping: Interval,
    status: Option<ExitStatus>,
    /// Why it was not left to end by itself.
    cut: Option<Ended>,
}

impl<S: Source, K: Sink> Attendance<'_, S, K> {
    fn is_going_on(&self) -> bool {
        let open = self.status.is_none() || self.stdout.is_open() || self.stderr.is_open();
        open && self.phase != Phase::Abandoned
    }

    /// Waits for whatever happens next.
    async fn step(&mut self) -> io::Result<()> {
        let room = self.meter.sink.has_room();
        let open = self.stdout.is_open() || self.stderr.is_open();
        tokio::select! {
            bytes = self.stdout.next(), if room && self.stdout.is_open() => {
                self.meter.take(Stream::Stdout, bytes);
            }
            bytes = self.stderr.next(), if room && self.stderr.is_open() => {
                self.meter.take(Stream::Stderr, bytes);
            }
            () = self.meter.sink.room(), if open && !room => {}
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
            self.cut_off(Ended::OutputLimit).await;
        }
        Ok(())
    }

    async fn cut_off(&mut self, cut: Ended) {
        self.cut = Some(cut);
        self.kill().await;
    }

    async fn deadline_passed(&mut self) {
        let left = self.due.saturating_sub(running_time::now());
        if !left.is_zero() {
            self.deadline.as_mut().reset(Instant::now() + left);
            return;
        }
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
        self.due = running_time::now() + grace;
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
