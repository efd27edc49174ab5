//! The command.

use super::check::PreflightCheck;
use super::preflight_context::PreflightContext;
use crate::cli::checks::CheckReport;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::ExitCode;
use crate::cli::maintenance_args::PreflightArgs;

/// Makes all checks and tells about each. What is wrong makes the exit code 1.
pub(in crate::cli) async fn run(
    args: PreflightArgs,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let mut checks = CheckReport::new("preflight", context, args.json);
    let ground = PreflightContext::load(args, context).await;
    for check in PreflightCheck::ALL {
        match check.run(&ground).await {
            Some(outcome) => checks.add(check.name(), outcome)?,
            None => {
                if let Some(why) = check.skip_reason() {
                    checks.note(why.to_owned())?;
                }
            }
        }
    }
    checks.finish()
}
