//! `ralph completions`: prints a script that completes the command line in a shell.

use clap::CommandFactory as _;

use super::args::{Cli, CompletionsArgs};
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs, context: &Context) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ralph", &mut script);
    context
        .output()
        .print_text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}
