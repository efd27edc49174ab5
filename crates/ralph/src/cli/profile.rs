//! `ralph profile`: switches to the model of another profile from the next iteration on.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::steering::require_profile;
use ralph_core::run::Command;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use super::steer;

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// The profile in config/models.yaml
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub profile: String,
}

/// Checks that the profile is usable, and sends the command.
pub(super) async fn run(args: ProfileArgs, context: &Context) -> Result<ExitCode, AppError> {
    require_profile(&args.run.run, &args.profile, &context.app).await?;
    let command = Command::Profile {
        name: args.profile.clone(),
    };
    steer::run(&args.run, &command, context).await
}
