//! `ralph mode`: changes how far the user may intervene in a run.

use clap::Args;
use ralph_app::AppError;
use ralph_core::run::Command;
use ralph_core::task::RunMode;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::LeadingRunArg;
use super::steer;

/// Arguments of `mode`.
#[derive(Debug, Args)]
pub(super) struct ModeArgs {
    #[command(flatten)]
    pub run: LeadingRunArg,
    /// The mode: autonomous, guided or debug
    pub mode: Option<String>,
}

const MODES: [RunMode; 3] = [RunMode::Autonomous, RunMode::Guided, RunMode::Debug];

/// Sends the command and prints its effect.
pub(super) async fn run(args: ModeArgs, context: &Context) -> Result<ExitCode, AppError> {
    let (run, name) = args.run.with_value(args.mode, ("mode", "MODE"))?;
    let Some(mode) = MODES.into_iter().find(|mode| mode.as_str() == name) else {
        let names = MODES.map(RunMode::as_str).join(", ");
        return Err(AppError::usage(
            format!("invalid value `{name}` for <MODE>"),
            format!("possible values: {names}"),
            "see `ralph mode --help`",
        ));
    };
    steer::run(&run, &Command::Mode { mode }, context).await
}
