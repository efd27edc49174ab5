//! `ralph resume`: continues a run that waits or was interrupted.

use clap::Args;
use ralph_app::AppError;
use ralph_app::issues::follow_issue;
use ralph_app::runs::{ResumeOutcome, prepare_resume};

use super::context::Context;
use super::detach::{self, DetachArgs, ProcessPlace};
use super::drive::drive;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use super::steer;

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    pub run: RunArg,
    #[command(flatten)]
    pub detach: DetachArgs,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Sends `resume` to the process of a waiting run, or drives the run here or in the background.
pub(super) async fn run(args: ResumeArgs, context: &Context) -> Result<ExitCode, AppError> {
    let place = args.detach.place().enter()?;
    Box::pin(resume(&args.run, place, args.json, context)).await
}

/// Sends `resume` to the process of a waiting run, or drives the run here or in the background.
pub(super) async fn resume(
    run: &RunArg,
    place: ProcessPlace,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    if place == ProcessPlace::NewBackground {
        let dir = context.app.find_run(&run.run)?;
        if !dir.is_held() {
            let arguments = detach::resume_arguments(&dir.state()?.plan.run, is_json);
            return detach::start_in_background(arguments, is_json, context).await;
        }
    }
    let outcome = Box::pin(prepare_resume(&run.run, &context.app)).await?;
    Box::pin(follow_outcome(outcome, place, is_json, context)).await
}

/// Reports that the process of a run continues, or drives the run here.
pub(super) async fn follow_outcome(
    outcome: ResumeOutcome,
    place: ProcessPlace,
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    match outcome {
        ResumeOutcome::Sent(report) => steer::print_report(&report, context),
        ResumeOutcome::Ready(run) => {
            let run = Box::pin(follow_issue(*run, &context.app)).await;
            let mode = context.existing_run_view_mode(is_json);
            if place == ProcessPlace::Background {
                detach::report_start(&run)?;
            }
            Box::pin(drive(run, mode)).await
        }
    }
}
