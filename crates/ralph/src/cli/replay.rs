//! `ralph replay`: repeats the display of a run from its journal.

use std::io;

use clap::Args;
use ralph_app::AppError;
use ralph_app::follow::JournalFollower;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use crate::terminal::{OutputMode, RunView, SpinnerVisibility};

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Shows all records.
pub(super) fn run(args: &ReplayArgs, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run.run)?;
    let mode = if args.json {
        OutputMode::Json
    } else {
        // Nothing is in progress, so there is no spinner.
        let style = context.output().style();
        style.output_mode(SpinnerVisibility::Hidden)
    };
    let mut view = RunView::new(Box::new(io::stdout()), mode);
    JournalFollower::new(&dir).read_new(&mut |record, state| view.show(record, state))?;
    Ok(ExitCode::Success)
}
