//! `ralph replay`: shows again what a run showed, from its journal.

use std::io;

use super::args::RunArg;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use crate::terminal::follow::Reader;
use crate::terminal::{Progress, View};

/// Shows all records.
pub(super) fn run(args: &RunArg, context: &Context) -> Result<ExitCode, CliError> {
    let dir = context.find(args)?;
    // Nothing is waited for any more, so nothing turns.
    let mode = context.output().look().mode(Progress::Hidden);
    let mut view = View::new(Box::new(io::stdout()), mode);
    Reader::new(&dir).catch_up(&mut |record, state| view.show(record, state))?;
    Ok(ExitCode::Success)
}
