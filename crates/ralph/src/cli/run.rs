//! `ralph run`.

use std::future::{Future, ready};

use super::args::RunArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;

/// Refuses: this command is not part of this build.
pub(super) fn run(
    _args: RunArgs,
    _context: &Context,
) -> impl Future<Output = Result<ExitCode, CliError>> {
    ready(Err(CliError::usage(
        "cannot do `run`",
        "it is not part of this build",
        "see `ralph --help` for what is",
    )))
}
