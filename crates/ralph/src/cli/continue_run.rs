//! `ralph continue`: continues a run with other budgets.

use clap::Args;
use ralph_app::AppError;
use ralph_app::runs::prepare_continue;

use super::budget_args::BudgetArgs;
use super::context::Context;
use super::detach::ProcessPlace;
use super::exit::ExitCode;
use super::resume;
use super::run_arg::RunArg;

/// Arguments of `continue`.
#[derive(Debug, Args)]
pub(super) struct ContinueArgs {
    #[command(flatten)]
    pub run: RunArg,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Sets the budgets, then drives the run here or lets its process continue.
pub(super) async fn run(args: ContinueArgs, context: &Context) -> Result<ExitCode, AppError> {
    let limits = args.budgets.limits();
    let outcome = Box::pin(prepare_continue(&args.run.run, &limits, &context.app)).await?;
    Box::pin(resume::follow_outcome(
        outcome,
        ProcessPlace::Foreground,
        args.json,
        context,
    ))
    .await
}
