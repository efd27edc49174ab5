//! `ralph top`: shows all unfinished runs, of all repositories.

use std::time::Duration;

use clap::Args;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::runs::{FollowedRuns, RunActivity};
use ralph_app::server::ServerQueue;
use ralph_core::money::Usd;
use ralph_engine::store::StateDir;
use tokio::signal::unix::{SignalKind, signal};

use super::context::Context;
use super::exit::ExitCode;
use super::output::StdoutReader;
use super::runs::{COLUMNS, table};
use crate::terminal::styled_line::StyledLine;
use crate::terminal::{StdoutStyle, sanitize, terminal_rows};

/// How often the list is refreshed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The lines around the runs: the header, the summary and the cursor.
const OTHER_LINES: usize = 3;
/// The number of columns that are kept for the activity of a run.
const MIN_ACTIVITY_WIDTH: usize = 16;

const HEADER: [&str; COLUMNS] = [
    "RUN", "TITLE", "STATUS", "ITER", "LOOP", "COST", "TIME", "NOW",
];

/// Arguments of `top`.
#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// Print JSON, once
    #[arg(long)]
    pub json: bool,
}

/// Prints the list once, or refreshes it on a terminal until Ctrl-C.
pub(super) async fn run(args: TopArgs, context: &Context) -> Result<ExitCode, AppError> {
    let state = context.app.state_dir()?;
    let output = context.output();
    let mut runs = FollowedRuns::default();
    let (activities, now) = read(&mut runs, &state, context).await?;
    if args.json {
        output.print_json(&activities)?;
        return Ok(ExitCode::Success);
    }
    if output.style() == StdoutStyle::Plain {
        output.print_lines(&lines(&activities, &runs, now, (usize::MAX, None)))?;
        return Ok(ExitCode::Success);
    }
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| AppError::runtime("cannot handle Ctrl-C", error.to_string(), ""))?;
    let (mut activities, mut now, mut drawn) = (activities, now, 0);
    loop {
        let room = terminal_rows().saturating_sub(OTHER_LINES).max(1);
        let shown = lines(&activities, &runs, now, (room, output.style().columns()));
        // Moves to the first line of the last list and clears everything below.
        let clear = match drawn {
            0 => String::new(),
            drawn => format!("\u{1b}[{drawn}A\u{1b}[J"),
        };
        drawn = shown.len();
        output.print_text(&clear)?;
        if output.print_lines(&shown)? == StdoutReader::Disconnected {
            return Ok(ExitCode::Success);
        }
        tokio::select! {
            _ = interrupt.recv() => return Ok(ExitCode::Success),
            () = tokio::time::sleep(REFRESH_INTERVAL) => {}
        }
        (activities, now) = read(&mut runs, &state, context).await?;
    }
}

/// Returns the unfinished runs with their places in the queue of the server, and the time of reading.
async fn read(
    runs: &mut FollowedRuns,
    state: &StateDir,
    context: &Context,
) -> Result<(Vec<RunActivity>, jiff::Timestamp), AppError> {
    let queue = ServerQueue::read(&context.app).await;
    let now = context.app.clock().now();
    let activities = runs.read(state, now)?.into_iter();
    let activities = activities.map(|run| RunActivity {
        summary: run.summary.in_queue(&queue),
        ..run
    });
    Ok((activities.collect(), now))
}

/// Formats as many runs as there is room for.
fn lines(
    activities: &[RunActivity],
    runs: &FollowedRuns,
    now: jiff::Timestamp,
    (room, columns): (usize, Option<usize>),
) -> Vec<StyledLine> {
    let shown = &activities[..activities.len().min(room)];
    let rows: Vec<[String; COLUMNS]> = shown.iter().map(|run| row(run, now)).collect();
    let mut lines = if rows.is_empty() {
        vec![StyledLine::from_text(
            "no unfinished runs; `ralph runs --all` lists all",
        )]
    } else {
        table(&HEADER, &rows, columns, MIN_ACTIVITY_WIDTH)
    };
    let hidden = (activities.len() - shown.len()) as u64;
    let mut notes = Vec::new();
    if hidden > 0 {
        notes.push(format::plural(hidden, "more run", "more runs"));
    }
    if runs.unreadable() > 0 {
        let unreadable = format::plural(runs.unreadable() as u64, "run", "runs");
        notes.push(format!(
            "{unreadable} cannot be read, see `ralph runs --all`"
        ));
    }
    if !notes.is_empty() {
        lines.push(StyledLine::new().quiet(&notes.join("; ")));
    }
    lines
}

fn row(run: &RunActivity, now: jiff::Timestamp) -> [String; COLUMNS] {
    let summary = &run.summary;
    [
        summary.id.to_string(),
        sanitize::line(&run.title),
        summary.status.to_owned(),
        summary.iteration.to_string(),
        summary
            .loop_score
            .map_or_else(|| "-".to_owned(), |score| format!("{score:.1}")),
        Usd::from_dollars(summary.cost_usd)
            .unwrap_or_default()
            .to_string(),
        duration_text(run.active_seconds),
        sanitize::line(&activity_text(run, now)),
    ]
}

/// Describes what a run does now and for how long, or why it does nothing.
fn activity_text(run: &RunActivity, now: jiff::Timestamp) -> String {
    match (&run.activity, run.activity_since) {
        (Some(activity), Some(since)) => {
            let seconds = now.duration_since(since).as_secs().max(0);
            let duration = duration_text(seconds.unsigned_abs());
            // A narrow terminal cuts the end.
            format!("{duration} · {activity}")
        }
        (Some(_) | None, _) => run.summary.reason.clone().unwrap_or_else(|| "-".to_owned()),
    }
}

/// Formats whole seconds: `12s`, `2m 05s`.
fn duration_text(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        _ => format::duration(Duration::from_secs(seconds)),
    }
}
