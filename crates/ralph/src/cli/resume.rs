//! `ralph resume`: continues a run that waits or was interrupted.

use clap::Args;
use ralph_app::AppError;
use ralph_app::issues::follow_issue;
use ralph_app::runs::{ResumeOutcome, prepare_resume};
use ralph_core::state::RunState;

use super::context::Context;
use super::detach::{self, DetachArgs, ProcessPlace};
use super::drive::drive;
use super::exit::ExitCode;
use super::hand_over::{self, Display, ServerUse};
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

/// Sends `resume` to the process of a waiting run, or continues the run.
pub(super) async fn run(args: ResumeArgs, context: &Context) -> Result<ExitCode, AppError> {
    let worker = (args.detach.place().enter()?, args.detach.server_use());
    Box::pin(resume(&args.run, worker, args.json, context)).await
}

/// Sends `resume` to the process of a waiting run. Otherwise the run continues in the running server,
/// here or in the background.
pub(super) async fn resume(
    run: &RunArg,
    (place, server_use): (ProcessPlace, ServerUse),
    is_json: bool,
    context: &Context,
) -> Result<ExitCode, AppError> {
    let app = &context.app;
    let dir = app.find_run(&run.run)?;
    if !dir.is_held() {
        if can_continue(&dir.state()?)
            && let Some(server) = server_use.find(app).await?
        {
            let display = Display {
                place,
                is_json,
                context,
            };
            return Box::pin(hand_over::resume(&server, &dir, display)).await;
        }
        if place == ProcessPlace::NewBackground {
            let arguments = detach::resume_arguments(&dir.state()?.plan.run, is_json);
            return detach::start_in_background(arguments, is_json, context).await;
        }
    }
    match Box::pin(prepare_resume(&run.run, app)).await? {
        ResumeOutcome::Sent(report) => steer::print_report(&report, context),
        ResumeOutcome::Ready(run) => {
            let run = Box::pin(follow_issue(*run, app)).await;
            let mode = context.existing_run_view_mode(is_json);
            if place == ProcessPlace::Background {
                detach::report_start(&run)?;
            }
            Box::pin(drive(run, mode)).await
        }
    }
}

/// Returns whether a run can continue. Otherwise the refusal needs no server.
fn can_continue(state: &RunState) -> bool {
    !state.discarded && (!state.status.is_final() || state.may_continue)
}
