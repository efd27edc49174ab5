//! `ralph rm`: removes the directory of a run.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::format;
use ralph_app::runs::{RemovalGuard, remove_run};

use super::context::Context;
use super::exit::ExitCode;
use crate::terminal::styled_line::StyledLine;

/// Arguments of `rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// The run: its id or a prefix of it, its task's id, or `last`
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub run: String,
    /// Also remove a run that is unfinished, damaged, or has commits that were not delivered
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Removes the run and prints the freed space.
pub(super) async fn run(args: RmArgs, context: &Context) -> Result<ExitCode, AppError> {
    let guard = if args.force {
        RemovalGuard::Force
    } else {
        RemovalGuard::FinishedOnly
    };
    let removed = remove_run(&args.run, guard, &context.app).await?;
    if args.json {
        context.output().print_json(&removed)?;
        return Ok(ExitCode::Success);
    }
    let freed = format::bytes(removed.bytes);
    let line = StyledLine::from_text("removed run ")
        .strong(removed.run.as_str())
        .plain(&format!(" · {freed}"));
    let sandboxes = removed.sandboxes.iter();
    let sandboxes =
        sandboxes.map(|name| StyledLine::from_text(&format!("removed sandbox `{name}`")));
    let shared = removed.shared.values().map(|bytes| {
        let freed = format::bytes(*bytes);
        StyledLine::from_text(&format!("removed shared objects without a run · {freed}"))
    });
    let lines = std::iter::once(line).chain(sandboxes).chain(shared);
    let lines: Vec<StyledLine> = lines.collect();
    context.output().print_lines(&lines)?;
    Ok(ExitCode::Success)
}
