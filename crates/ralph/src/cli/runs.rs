//! `ralph runs`: lists all runs.

use ralph_core::money::Usd;

use super::args::RunsArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::summary::{DAMAGED, INTERRUPTED, NEEDS_UPGRADE, Summary};
use crate::terminal::line::{Line, Tone};
use crate::terminal::{format, sanitize, width};

const HEADER: [&str; 8] = [
    "RUN", "TASK", "STATUS", "ITER", "LOOP", "COST", "ACTIVE", "PR",
];
const STATUS: usize = 2;
/// The widest a column gets, but for the last.
const MAX_COLUMNS: usize = 40;

/// Prints the runs, the newest first.
pub(super) fn run(args: &RunsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let state = context.state()?;
    let summaries: Vec<Summary> = state
        .runs()?
        .iter()
        .rev()
        .map(|id| Summary::read(id, &state.run(id)))
        .collect();
    let output = context.output();
    if args.json {
        output.json(&summaries)?;
    } else if summaries.is_empty() {
        output.lines(&[Line::of("no runs yet; `ralph run` starts one")])?;
    } else {
        output.lines(&table(&summaries, context.clock().now()))?;
        let unread = summaries.iter().filter(|run| run.status == NEEDS_UPGRADE);
        let notes: Vec<Line> = unread.filter_map(note).collect();
        output.lines(&notes)?;
    }
    Ok(ExitCode::Success)
}

fn table(summaries: &[Summary], now: jiff::Timestamp) -> Vec<Line> {
    let rows: Vec<[String; 8]> = summaries.iter().map(|summary| row(summary, now)).collect();
    let mut widths = HEADER.map(str::len);
    for row in &rows {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(width::columns(cell)).min(MAX_COLUMNS);
        }
    }
    let header = HEADER
        .iter()
        .zip(widths)
        .fold(Line::new(), |line, (name, width)| {
            line.quiet(&width::pad(name, width + 2))
        });
    let body = rows.iter().map(|row| {
        row.iter()
            .zip(widths)
            .enumerate()
            .fold(Line::new(), |line, (column, (cell, width))| {
                let last = column == HEADER.len() - 1;
                let cell = if last {
                    cell.clone()
                } else {
                    width::pad(&width::cut(cell, width), width + 2)
                };
                let tone = if column == STATUS {
                    tone(row[STATUS].as_str())
                } else {
                    Tone::Plain
                };
                line.with(tone, &cell)
            })
    });
    std::iter::once(header).chain(body).collect()
}

fn row(summary: &Summary, now: jiff::Timestamp) -> [String; 8] {
    let dash = || "-".to_owned();
    [
        summary.id.to_string(),
        summary.task_id.clone().unwrap_or_else(dash),
        summary.status.to_owned(),
        summary.iteration.to_string(),
        summary
            .loop_score
            .map_or_else(dash, |score| format!("{score:.1}")),
        Usd::from_dollars(summary.cost_usd)
            .unwrap_or_default()
            .to_string(),
        summary
            .updated_at
            .map_or_else(dash, |then| format::age(now, then)),
        summary.pr.as_ref().map_or_else(dash, |pull| {
            format!("#{} {}", pull.number, sanitize::line(&pull.url))
        }),
    ]
}

/// Says why a run cannot be read, below the table: the column has room for one word.
fn note(summary: &Summary) -> Option<Line> {
    let reason = summary.reason.as_ref()?;
    Some(Line::of("note: ").folded(Tone::Plain, reason))
}

/// Returns the tone of a status in one word.
pub(super) fn tone(status: &str) -> Tone {
    match status {
        "succeeded" => Tone::Good,
        "failed" | DAMAGED => Tone::Bad,
        "paused" | "waiting_quota" | "waiting_provider" | "stopped" | "sandbox_lost"
        | INTERRUPTED | NEEDS_UPGRADE => Tone::Warn,
        _ => Tone::Accent,
    }
}
