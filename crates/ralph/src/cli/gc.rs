//! `ralph gc`: shows the disk space of runs and removes old ones.

use std::time::Duration;

use clap::Args;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::runs::{
    GcEntry, GcMode, GcReport, GcVerdict, SetupGarbageScope, SharedObjects, collect_garbage,
};

use super::context::Context;
use super::exit::ExitCode;
use super::runs::status_tone;
use crate::terminal::styled_line::{StyledLine, Tone};
use crate::terminal::width;
use ralph_app::duration;

/// The widths of the columns before the verdict.
const SIZE_WIDTH: usize = 10;
const STATUS_WIDTH: usize = 14;

/// Arguments of `gc`.
#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Remove finished runs whose last change is older than this, such as 30d or 12h
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = duration::parse)]
    pub older_than: Duration,
    /// Remove all installed dependencies that are stored for later sandboxes
    #[arg(long)]
    pub setup: bool,
    /// Remove them; without this, they are only listed
    #[arg(long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Lists the runs, and removes old ones with `--yes`. A failed removal sets the exit code to 1.
pub(super) async fn run(args: GcArgs, context: &Context) -> Result<ExitCode, AppError> {
    let mode = if args.yes {
        GcMode::Remove
    } else {
        GcMode::DryRun
    };
    let setup = if args.setup {
        SetupGarbageScope::All
    } else {
        SetupGarbageScope::Unused
    };
    let report = collect_garbage(args.older_than, mode, setup, &context.app).await?;
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context
            .output()
            .print_lines(&lines(&report, context.app.clock().now()))?;
    }
    let has_failed = |entry: &GcEntry| matches!(entry.verdict, GcVerdict::Failed(_));
    Ok(if report.runs.iter().any(has_failed) {
        ExitCode::Runtime
    } else {
        ExitCode::Success
    })
}

fn lines(report: &GcReport, now: jiff::Timestamp) -> Vec<StyledLine> {
    if report.runs.is_empty() && report.shared.is_empty() {
        let none = StyledLine::from_text("no runs yet");
        return [none].into_iter().chain(setup_line(report)).collect();
    }
    let runs = report.runs.iter();
    let mut lines: Vec<StyledLine> = runs
        .map(|entry| entry_line(entry, report.dry_run, now))
        .collect();
    lines.extend(
        report
            .shared
            .iter()
            .map(|shared| shared_line(shared, report.dry_run)),
    );
    let (all, old) = (
        format::bytes(report.bytes),
        format::bytes(report.removed_bytes),
    );
    let total = if report.dry_run {
        format!("{all} in total; `--yes` removes {old}")
    } else {
        format!("{all} in total, {old} removed")
    };
    lines.push(StyledLine::from_text(&total));
    lines.extend(setup_line(report));
    lines
}

/// Describes the stored results of set-up, if there are any.
fn setup_line(report: &GcReport) -> Option<StyledLine> {
    let size = format::bytes(report.setup_bytes);
    let removed = format::bytes(report.removed_setup_bytes);
    let removal = if report.dry_run {
        format!("`--yes` removes {removed}")
    } else {
        format!("{removed} removed")
    };
    let text = format!("{size} of installed dependencies for later sandboxes; {removal}");
    (report.setup_bytes > 0).then(|| StyledLine::from_text(&text))
}

/// Returns the line of the objects that the runs of one repository share.
fn shared_line(shared: &SharedObjects, is_dry_run: bool) -> StyledLine {
    let size = format::bytes(shared.bytes);
    let line = StyledLine::from_text("shared objects    ")
        .plain("  ")
        .plain(&width::pad(&size, SIZE_WIDTH));
    match (shared.removed, is_dry_run) {
        (true, true) => line.span(Tone::Warn, "would be removed"),
        (true, false) => line.span(Tone::Good, "removed"),
        (false, _) => {
            let runs = format::plural(shared.runs.len() as u64, "run", "runs");
            line.wrapped(
                Tone::Plain,
                &format!("kept: {runs} of `{}`", shared.label()),
            )
        }
    }
}

fn entry_line(entry: &GcEntry, is_dry_run: bool, now: jiff::Timestamp) -> StyledLine {
    let size = format::bytes(entry.bytes + entry.sandbox_bytes);
    let age = entry
        .updated_at
        .map_or_else(String::new, |then| format::age(now, then));
    let line = StyledLine::new()
        .strong(entry.run.as_str())
        .plain("  ")
        .plain(&width::pad(&size, SIZE_WIDTH))
        .span(
            status_tone(entry.status),
            &width::pad(entry.status, STATUS_WIDTH),
        )
        .quiet(&width::pad(&age, SIZE_WIDTH));
    match &entry.verdict {
        GcVerdict::Remove if is_dry_run => line.span(Tone::Warn, "would be removed"),
        GcVerdict::Remove => line.span(Tone::Good, "removed"),
        GcVerdict::Keep(why) => line.wrapped(Tone::Plain, &format!("kept: {why}")),
        GcVerdict::Failed(why) => line.wrapped(Tone::Bad, why),
    }
}
