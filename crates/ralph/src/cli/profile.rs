//! `ralph profile`: switches to the model of another profile from the next iteration on.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ralph_app::AppError;
use ralph_app::steering::require_profile;
use ralph_core::run::Command;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::LeadingRunArg;
use super::steer;

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The profile in config/models.yaml
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub profile: Option<String>,
}

/// Checks that the profile is usable, and sends the command.
pub(super) async fn run(args: ProfileArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (run, name) = args.run.with_value(args.profile, ("profile", "PROFILE"))?;
    require_profile(&run.run, &name, &context.app).await?;
    steer::run(&run, &Command::Profile { name }, context).await
}
