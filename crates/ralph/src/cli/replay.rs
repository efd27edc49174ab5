//! `ralph replay`: repeats the display of a run from its journal.

use std::io;

use ralph_app::AppError;
use ralph_app::follow::JournalFollower;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use crate::terminal::{RunView, SpinnerVisibility};

/// Shows all records.
pub(super) fn run(args: &RunArg, context: &Context) -> Result<ExitCode, AppError> {
    let dir = context.app.find_run(&args.run)?;
    // Nothing is in progress, so there is no spinner.
    let mode = context
        .output()
        .style()
        .output_mode(SpinnerVisibility::Hidden);
    let mut view = RunView::new(Box::new(io::stdout()), mode);
    JournalFollower::new(&dir).read_new(&mut |record, state| view.show(record, state))?;
    Ok(ExitCode::Success)
}
