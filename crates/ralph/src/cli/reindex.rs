//! `ralph reindex`: brings the server's index of all runs up to date.

use clap::Args;
use ralph_app::AppError;
use ralph_app::format;
use ralph_server::{ReindexReport, reindex};

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `reindex`.
#[derive(Debug, Args)]
pub(super) struct ReindexArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints what was done.
pub(super) async fn run(args: ReindexArgs, context: Context) -> Result<ExitCode, AppError> {
    let output = context.output();
    let report = reindex(context.app).await?;
    if args.json {
        output.print_json(&report)?;
    } else {
        output.print_lines(&[StyledLine::from_text(&summary(&report))])?;
    }
    Ok(ExitCode::Success)
}

fn summary(report: &ReindexReport) -> String {
    let kind = if report.created {
        "a new index"
    } else {
        "the index"
    };
    format!(
        "{kind} has {}: {} updated, {} removed",
        format::plural(report.runs, "run", "runs"),
        report.updated,
        report.removed
    )
}
