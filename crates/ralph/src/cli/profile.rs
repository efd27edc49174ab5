//! `ralph profile`: lets the model of another profile answer from the next iteration on.

use ralph_core::run::Command;

use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use super::steer;
use super::steer_args::ProfileArgs;

/// Looks whether the profile can be used, and sends the command.
pub(super) fn run(args: &ProfileArgs, context: &Context) -> Result<ExitCode, CliError> {
    context.models()?.for_profile(&args.profile)?;
    let command = Command::Profile {
        name: args.profile.clone(),
    };
    steer::run(&args.run, &command, context)
}
