//! `ralph replay`: shows again what a run showed, from its journal.

use std::io;

use super::args::RunArg;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use crate::terminal::follow::JournalFollower;
use crate::terminal::{RunView, SpinnerVisibility};

/// Shows all records.
pub(super) fn run(args: &RunArg, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find_run(args)?;
    // Nothing is waited for any more, so nothing turns.
    let mode = context
        .output()
        .look()
        .output_mode(SpinnerVisibility::Hidden);
    let mut view = RunView::new(Box::new(io::stdout()), mode);
    JournalFollower::new(&dir).read_new(&mut |record, state| view.show(record, state))?;
    Ok(ExitCode::Success)
}
