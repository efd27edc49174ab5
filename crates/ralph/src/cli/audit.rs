//! `ralph audit`: checks a run with the independent oracle.

use clap::Args;
use ralph_app::AppError;
use ralph_audit::audit;

use super::context::Context;
use super::exit::ExitCode;
use super::run_arg::RunArg;
use crate::terminal::sanitize;

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the report of the oracle. A failed check sets the exit code to 1.
pub(super) fn run(args: &AuditArgs, context: &Context) -> Result<ExitCode, AppError> {
    let providers = context.app.providers()?;
    let dir = context.app.find_run(&args.run.run)?;
    let secrets = context.app.environment().secrets();
    let report = audit(
        dir.root(),
        providers.state.root(),
        &providers.search_path,
        &secrets,
    );
    if args.json {
        context.output().print_json(&report)?;
    } else {
        context
            .output()
            .print_text(&sanitize::text(&report.render()))?;
    }
    Ok(if report.is_green() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}
