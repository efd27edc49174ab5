//! `ralph runs`: lists the runs of the working directory's repository, or all.

use clap::Args;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::runs::{
    DAMAGED, INTERRUPTED, NEEDS_UPGRADE, ORPHANED, OrphanedRuns, QUEUED, RunSummary,
};
use ralph_app::server::ServerQueue;
use ralph_core::id::RunId;
use ralph_core::money::Usd;
use ralph_engine::journal::RunOutline;
use ralph_engine::linked_worktrees::LinkedWorktrees;
use ralph_engine::store::StateDir;

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::{sanitize, width};

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub(super) struct RunsArgs {
    /// List the runs of all repositories
    #[arg(short, long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The number of columns of a table of runs.
pub(super) const COLUMNS: usize = 8;
const HEADER: [&str; COLUMNS] = [
    "RUN", "TASK", "STATUS", "ITER", "LOOP", "COST", "ACTIVE", "PR",
];
const TASK_COLUMN: usize = 1;
const STATUS_COLUMN: usize = 2;
/// The minimum width of the column of the task on a narrow terminal.
const MIN_TASK_WIDTH: usize = 8;
/// The maximum width of a column, except the last one.
const MAX_COLUMN_WIDTH: usize = 40;

/// Prints the runs, newest first.
pub(super) async fn run(args: RunsArgs, context: &Context) -> Result<ExitCode, AppError> {
    let state = context.app.state_dir()?;
    let all = state.runs()?;
    // Scripts that read the JSON filter the runs themselves.
    let listed = if args.all || args.json {
        all.clone()
    } else {
        runs_of_repository(&all, &state, context)
    };
    let others = all.len() - listed.len();
    let now = context.app.clock().now();
    let queue = ServerQueue::read(&context.app).await;
    let orphans = OrphanedRuns::find(&context.app).await?;
    let orphans = orphans.listed().rev().map(|orphan| orphan.summary(now));
    let known = listed.iter().rev();
    let summaries: Vec<RunSummary> = known
        .map(|id| RunSummary::read(id, &state.run(id)).in_queue(&queue))
        .chain(orphans)
        .collect();
    let output = context.output();
    if args.json {
        output.print_json(&summaries)?;
    } else if summaries.is_empty() {
        output.print_lines(&[StyledLine::from_text("no runs yet; `ralph run` starts one")])?;
    } else {
        let rows: Vec<[String; COLUMNS]> = summaries.iter().map(|run| row(run, now)).collect();
        let columns = output.style().columns();
        output.print_lines(&table(&HEADER, &rows, columns, 0))?;
        let unreadable = summaries
            .iter()
            .filter(|run| [NEEDS_UPGRADE, ORPHANED].contains(&run.status));
        let notes: Vec<StyledLine> = unreadable.filter_map(unreadable_note).collect();
        output.print_lines(&notes)?;
        if others > 0 {
            let runs = format::plural(others as u64, "run", "runs");
            let note = format!("{runs} of other repositories; `ralph runs --all` lists them");
            output.print_lines(&[StyledLine::new().quiet(&note)])?;
        }
    }
    Ok(ExitCode::Success)
}

/// Returns the runs of the working directory's repository; all if it has none, or is no repository.
fn runs_of_repository(all: &[RunId], state: &StateDir, context: &Context) -> Vec<RunId> {
    let Some(repository) = context.app.working_repository() else {
        return all.to_vec();
    };
    let worktrees = LinkedWorktrees::find(&repository.path);
    let is_own = |id: &&RunId| {
        let outline = RunOutline::read(&state.run(id).journal());
        outline.is_of(&repository) || outline.is_of_any(&worktrees)
    };
    let own: Vec<RunId> = all.iter().filter(is_own).cloned().collect();
    if own.is_empty() { all.to_vec() } else { own }
}

/// Formats a table of runs; the third column is their status. The second column is shortened until
/// `last_column` columns are left for the last one.
pub(super) fn table(
    header: &[&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    columns: Option<usize>,
    last_column: usize,
) -> Vec<StyledLine> {
    let mut widths = header.map(str::len);
    for row in rows {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(width::columns(cell)).min(MAX_COLUMN_WIDTH);
        }
    }
    let columns = columns.map(|columns| columns.saturating_sub(last_column));
    shrink_task(&mut widths, columns);
    let header = header.iter().zip(widths).enumerate().fold(
        StyledLine::new().cut(),
        |line, (column, (name, width))| {
            let is_last = column == COLUMNS - 1;
            let width = if is_last { 0 } else { width + 2 };
            line.quiet(&width::pad(name, width))
        },
    );
    let body = rows.iter().map(|row| {
        row.iter().zip(widths).enumerate().fold(
            StyledLine::new().cut(),
            |line, (column, (cell, width))| {
                let last = column == COLUMNS - 1;
                let cell = if last {
                    cell.clone()
                } else {
                    width::pad(&width::truncate(cell, width), width + 2)
                };
                let tone = if column == STATUS_COLUMN {
                    status_tone(row[STATUS_COLUMN].as_str())
                } else {
                    Tone::Plain
                };
                line.span(tone, &cell)
            },
        )
    });
    std::iter::once(header).chain(body).collect()
}

/// Shortens the column of the task, so that a narrow terminal shows all columns up to the last one.
fn shrink_task(widths: &mut [usize; COLUMNS], columns: Option<usize>) {
    let Some(columns) = columns else {
        return;
    };
    let used: usize = widths
        .iter()
        .take(HEADER.len() - 1)
        .map(|width| width + 2)
        .sum();
    let task = &mut widths[TASK_COLUMN];
    let excess = used.saturating_sub(columns);
    *task = task.saturating_sub(excess).max(MIN_TASK_WIDTH.min(*task));
}

fn row(summary: &RunSummary, now: jiff::Timestamp) -> [String; COLUMNS] {
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

/// Returns a line below the table with the reason why a run cannot be read or continued: its column has
/// space for only one word.
fn unreadable_note(summary: &RunSummary) -> Option<StyledLine> {
    let reason = summary.reason.as_ref()?;
    Some(StyledLine::from_text("note: ").wrapped(Tone::Plain, reason))
}

/// Returns the tone of a status.
pub(super) fn status_tone(status: &str) -> Tone {
    match status {
        "succeeded" => Tone::Good,
        "failed" | DAMAGED => Tone::Bad,
        "paused" | "waiting_quota" | "waiting_provider" | "waiting_host" | "stopped"
        | "sandbox_lost" | QUEUED | INTERRUPTED | NEEDS_UPGRADE | ORPHANED => Tone::Warn,
        _ => Tone::Accent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::styled_line::Colour;

    #[test]
    fn the_last_column_keeps_its_room() {
        let text = |length| "x".repeat(length);
        let row = [
            text(18),
            text(35),
            text(7),
            text(1),
            text(3),
            text(5),
            text(6),
            text(30),
        ];
        let header = [
            "RUN", "TITLE", "STATUS", "ITER", "LOOP", "COST", "TIME", "NOW",
        ];
        let lines = table(&header, &[row], Some(80), 16);
        let shown = lines[1].render(Colour::Unused, Some(80));
        let columns: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(columns.len(), COLUMNS, "{shown}");
        assert!(width::columns(columns[7]) >= 12, "{shown}");
    }
}
