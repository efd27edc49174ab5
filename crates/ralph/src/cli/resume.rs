//! `ralph resume`: continues a run that waits or was interrupted.

use clap::Args;
use ralph_app::AppError;
use ralph_app::runs::{ResumeOutcome, prepare_resume};

use super::context::Context;
use super::drive::drive;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use super::steer;

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Sends `resume` to the process of a waiting run, or drives the run here.
pub(super) async fn run(args: ResumeArgs, context: &Context) -> Result<ExitCode, AppError> {
    Box::pin(resume(&args.run, args.json, context)).await
}

/// Sends `resume` to the process of a waiting run, or drives the run here.
pub(super) async fn resume(
    run: &RunArg,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let outcome = Box::pin(prepare_resume(&run.run, &context.app)).await?;
    Box::pin(go_on(outcome, is_json, context)).await
}

/// Reports that the process of a run continues, or drives the run here.
pub(super) async fn go_on(
    outcome: ResumeOutcome,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    match outcome {
        ResumeOutcome::Sent(report) => steer::print_report(&report, context),
        ResumeOutcome::Ready(run) => {
            let mode = context.existing_run_view_mode(is_json);
            Box::pin(drive(*run, mode)).await
        }
    }
}
