//! `ralph demo`.

use std::future::{Future, ready};

use super::args::DemoArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;

/// Refuses: this command is not part of this build.
pub(super) fn run(
    _args: DemoArgs,
    _context: &Context,
) -> impl Future<Output = Result<ExitCode, CliError>> {
    ready(Err(CliError::usage(
        "cannot do `demo`",
        "it is not part of this build",
        "see `ralph --help` for what is",
    )))
}
