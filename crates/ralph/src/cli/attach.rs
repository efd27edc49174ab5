//! `ralph attach`: shows the run of another process, like `ralph run` shows its own.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ralph_app::AppError;
use ralph_app::follow::{FollowEnd, JournalFollower, POLL_INTERVAL};
use ralph_app::server::ServerQueue;
use ralph_core::id::RunId;
use ralph_core::run::RunStatus;
use ralph_core::state::RunState;
use ralph_engine::durable::StoreError;
use ralph_engine::live_output::LiveFollower;
use ralph_engine::store::RunDir;
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use super::exit::ExitCode;
use super::output::CliOutput;
use super::run_arg::RunArg;
use crate::terminal::lines::budgets::progress_summary;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::{OutputMode, RunView};

/// The number of earlier records that are shown first.
const EARLIER_RECORDS: u64 = 20;
/// The number of earlier lines of live output that are shown first.
const EARLIER_LIVE_LINES: usize = 20;

/// How often the server is asked about a run that waits for a worker.
pub(super) const QUEUE_INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `attach`.
#[derive(Debug, Args)]
pub(super) struct AttachArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Shows the run until it ends, no process works on it, or the user detaches.
pub(super) async fn run(args: &AttachArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let mode = context.existing_run_view_mode(args.json);
    let output = context.output();
    let state = dir.state()?;
    if mode != OutputMode::Json && dir.is_held() {
        let line = StyledLine::from_text("  ");
        let progress = line.wrapped(Tone::Plain, &progress_summary(&state));
        output.print_lines([&attached_line(&state), &progress])?;
    }
    follow(&dir, ShownPart::End(state.seq), mode, context).await
}

/// The part of a run that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownPart {
    /// The last records until this one, everything after them, and the lines of live output.
    End(u64),
    /// The records after this one, like a run of this process.
    Since(u64),
}

impl ShownPart {
    fn contains(self, seq: u64) -> bool {
        match self {
            Self::End(last) => seq + EARLIER_RECORDS > last,
            Self::Since(last) => seq > last,
        }
    }
}

/// Shows a run until it ends, no process works on it, or the user detaches.
pub(super) async fn follow(
    dir: &RunDir,
    part: ShownPart,
    mode: OutputMode,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let run = dir.state()?.plan.run;
    let output = context.output();
    match show(dir, (mode, context), part).await? {
        AttachEnd::Detached => {
            let line = format!("detached: run `{run}` continues; `ralph stop {run}` ends it");
            output.print_stderr_lines([&StyledLine::from_text(&line)]);
            Ok(ExitCode::Success)
        }
        AttachEnd::Followed(end, status) => {
            // The last record of a run that was shown from its start says how it ended.
            let is_shown = matches!(part, ShownPart::Since(_)) && !status.needs_process();
            if mode != OutputMode::Json && !is_shown {
                print_end(&run, end, &status, output)?;
            }
            Ok(ExitCode::for_status(&status))
        }
    }
}

/// The reason why the display ended.
enum AttachEnd {
    /// The user sent an interrupt, or the reader of standard output is gone.
    Detached,
    /// The run has ended, or no process works on it.
    Followed(FollowEnd, RunStatus),
}

/// Shows the last records and the end of the live output, then new ones as they are written.
async fn show(
    dir: &RunDir,
    (mode, context): (OutputMode, &Context),
    part: ShownPart,
) -> Result<AttachEnd, AppError> {
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| AppError::runtime("cannot handle Ctrl-C", error.to_string(), ""))?;
    let is_disconnected = Arc::new(AtomicBool::new(false));
    let stdout = WatchedStdout {
        is_disconnected: is_disconnected.clone(),
    };
    let mut view = RunView::new(Box::new(stdout), mode);
    let mut journal = JournalFollower::new(dir);
    let mut live = LiveFollower::new(dir);
    let mut live_limit = EARLIER_LIVE_LINES;
    let read_journal = |journal: &mut JournalFollower, view: &mut RunView| {
        journal.read_new(&mut |record, state| {
            if part.contains(record.seq) {
                view.show(record, state);
            }
        })
    };
    read_journal(&mut journal, &mut view)?;
    view.count_from_record(context.app.clock().now());
    loop {
        // Checked before reading, so that the last records of a process are not missed.
        let is_held = dir.is_held();
        // The output of a command precedes the record of its end.
        let mut lines = live
            .read_new()
            .map_err(StoreError::when("read the live output of", dir.root()))?;
        if !is_held {
            lines.extend(live.take_incomplete_line());
        }
        match part {
            ShownPart::End(_) => {
                view.show_live(&lines[lines.len().saturating_sub(live_limit)..]);
                live_limit = usize::MAX;
            }
            ShownPart::Since(_) => view.show_latest_output(&lines),
        }
        read_journal(&mut journal, &mut view)?;
        let status = journal.state().map(|state| state.status.clone());
        let mut wait = POLL_INTERVAL;
        match status {
            // A failed run that continues has this status until its process changes it.
            Some(status) if status.is_final() && !is_held => {
                return Ok(AttachEnd::Followed(FollowEnd::Finished, status));
            }
            Some(status) if !is_held => {
                if !ServerQueue::read(&context.app).await.contains(dir) {
                    return Ok(AttachEnd::Followed(FollowEnd::Unattended, status));
                }
                wait = QUEUE_INTERVAL;
            }
            Some(_) | None => {}
        }
        if is_disconnected.load(Ordering::Relaxed) {
            return Ok(AttachEnd::Detached);
        }
        tokio::select! {
            _ = interrupt.recv() => return Ok(AttachEnd::Detached),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

fn attached_line(state: &RunState) -> StyledLine {
    let (run, status) = (&state.plan.run, state.status.as_str());
    let text = format!(
        "attached to run `{run}` ({status}, iteration {}); Ctrl-C detaches and leaves the run alone",
        state.iteration
    );
    StyledLine::new().wrapped(Tone::Quiet, &text)
}

fn print_end(
    run: &RunId,
    end: FollowEnd,
    status: &RunStatus,
    output: CliOutput,
) -> Result<(), AppError> {
    let status = status.as_str();
    let text = match end {
        FollowEnd::Finished => format!("run `{run}` has ended: {status}"),
        FollowEnd::Unattended => {
            format!("no process works on run `{run}` ({status}); `ralph resume {run}` continues it")
        }
    };
    output.print_lines([&StyledLine::from_text(&text)])?;
    Ok(())
}

/// Standard output that records whether a write failed, because the reader is gone.
struct WatchedStdout {
    is_disconnected: Arc<AtomicBool>,
}

impl WatchedStdout {
    fn record<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.is_disconnected.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Write for WatchedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.record(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.record(io::stdout().flush())
    }
}
