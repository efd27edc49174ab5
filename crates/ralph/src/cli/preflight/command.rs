//! The command.

use super::check::Check;
use super::ground::Ground;
use crate::cli::care_args::PreflightArgs;
use crate::cli::checks::Checks;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;

/// Makes all checks and tells about each. What is wrong makes the exit code 1.
pub(in crate::cli) async fn run(
    args: PreflightArgs,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let mut checks = Checks::begin("preflight", context, args.json);
    let ground = Ground::read(args, context).await;
    for check in Check::ALL {
        match check.look(&ground).await {
            Some(outcome) => checks.add(check.name(), outcome)?,
            None => {
                if let Some(why) = check.left_out() {
                    checks.note(why.to_owned())?;
                }
            }
        }
    }
    checks.finish()
}
