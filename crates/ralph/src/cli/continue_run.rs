//! `ralph continue`: continues a run with other budgets.

use clap::Args;
use ralph_app::AppError;
use ralph_app::runs::set_limits;

use super::budget_args::BudgetArgs;
use super::context::Context;
use super::detach::ProcessPlace;
use super::exit::ExitCode;
use super::hand_over::ServerUse;
use super::resume;
use super::run_arg::RunArg;
use super::steer;

/// Arguments of `continue`.
#[derive(Debug, Args)]
pub(super) struct ContinueArgs {
    #[command(flatten)]
    pub run: RunArg,
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// Work on the run without the running server
    #[arg(long)]
    pub local: bool,
    /// Print JSON, one record per line
    #[arg(long)]
    pub json: bool,
}

/// Sets the budgets, then continues the run, or lets its process continue.
pub(super) async fn run(args: ContinueArgs, context: &Context) -> Result<ExitCode, AppError> {
    let limits = args.budgets.limits();
    if let Some(report) = Box::pin(set_limits(&args.run.run, &limits, &context.app)).await? {
        return steer::print_report(&report, context);
    }
    let worker = (ProcessPlace::Foreground, ServerUse::from_flag(args.local));
    Box::pin(resume::resume(&args.run, worker, args.json, context)).await
}
