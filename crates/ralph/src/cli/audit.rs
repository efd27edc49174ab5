//! `ralph audit`: lets the independent oracle look at a run.

use super::args::AuditArgs;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitCode;
use crate::terminal::sanitize;
use ralph_audit::audit;

/// Prints what the oracle found. A red check makes the exit code 1.
pub(super) fn run(args: &AuditArgs, context: &Context) -> Result<ExitCode, CliError> {
    let wiring = context.providers()?;
    let dir = context.find_run(&args.run)?;
    let secrets = context.environment().secrets();
    let found = audit(
        dir.root(),
        wiring.state.root(),
        &wiring.search_path,
        &secrets,
    );
    if args.json {
        context.output().print_json(&found)?;
    } else {
        context
            .output()
            .print_text(&sanitize::text(&found.render()))?;
    }
    Ok(if found.is_green() {
        ExitCode::Success
    } else {
        ExitCode::Runtime
    })
}
