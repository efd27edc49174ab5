//! `ralph audit`.

use super::args::AuditArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;

/// Refuses: this command is not part of this build.
pub(super) fn run(args: &AuditArgs, context: &Context) -> Result<ExitCode, CliError> {
    context.find(&args.run)?;
    Err(CliError::usage(
        "cannot do `audit`",
        "it is not part of this build",
        "see `ralph --help` for what is",
    ))
}
