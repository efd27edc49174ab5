//! `ralph completions`: prints a completion script for a shell.

use clap::Args;
use clap::CommandFactory as _;
use ralph_app::AppError;

use super::command_line::Cli;
use super::context::Context;
use super::exit::ExitCode;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints the script.
pub(super) fn run(args: &CompletionsArgs, context: &Context) -> Result<ExitCode, AppError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ralph", &mut script);
    context
        .output()
        .print_text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}
