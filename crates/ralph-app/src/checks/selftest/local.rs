//! The checks of local sandboxes.

use ralph_core::ports::SandboxProvider;

use super::basics;
use super::docker::interrupted_error;
use super::interrupts::Interrupts;
use super::session::{SelftestSession, sandbox_failure};
use super::{PREREQUISITES, SelftestRequest, skip_checks};
use crate::app::App;
use crate::checks::preflight::{PreflightContext, machine, sandbox};
use crate::checks::{CheckOutcome, CheckSink};
use crate::error::AppError;
use crate::planning::container;

const MACHINE: &str = "machine";
const CREATE: &str = "create sandbox";
const EXEC: &str = "run a command";
const FILES: &str = "files";
const TIMEOUT: &str = "timeout";
const CLEANUP: &str = "cleanup";

/// The checks that need a sandbox.
const SANDBOX_CHECKS: [&str; 4] = [EXEC, FILES, TIMEOUT, CLEANUP];

/// Tests local sandboxes.
pub(super) async fn run(
    request: &SelftestRequest,
    checks: &mut dyn CheckSink,
    app: &App,
) -> Result<(), AppError> {
    let providers = app.providers()?;
    let context = PreflightContext::for_provider("local", app).await;
    checks.add(PREREQUISITES, machine::check_git(&context))?;
    let outcome = sandbox::check_provider(&context).await;
    let is_usable = !outcome.is_failure();
    checks.add(MACHINE, outcome)?;
    let provider = providers.local_provider(container::local_limits(None, app)?);
    if !is_usable {
        let why = "this machine cannot be used";
        checks.add(CREATE, CheckOutcome::NotRun(why.into()))?;
        return skip_checks(checks, &SANDBOX_CHECKS, why);
    }
    let interrupts = Interrupts::listen(request.cancelled.clone());
    run_in_sandbox(checks, &*provider, interrupts).await
}

async fn run_in_sandbox(
    checks: &mut dyn CheckSink,
    provider: &dyn SandboxProvider,
    mut interrupts: Interrupts,
) -> Result<(), AppError> {
    let session = match SelftestSession::start(provider, "selftest").await {
        Ok(session) => session,
        Err(error) => {
            checks.add(CREATE, sandbox_failure(error))?;
            return skip_checks(checks, &SANDBOX_CHECKS, "there is no sandbox");
        }
    };
    let checked = interrupts
        .run_until_signal(run_sandbox_checks(checks, &session))
        .await;
    checks.add(CLEANUP, session.remove_and_verify().await)?;
    checked.unwrap_or_else(|| Err(interrupted_error()))
}

async fn run_sandbox_checks(
    checks: &mut dyn CheckSink,
    session: &SelftestSession<'_>,
) -> Result<(), AppError> {
    checks.add(
        CREATE,
        CheckOutcome::Passed(session.sandbox.id().to_string()),
    )?;
    checks.add(EXEC, basics::check_exec(session).await)?;
    checks.add(FILES, basics::check_files(session).await)?;
    checks.add(TIMEOUT, basics::check_timeout(session).await)
}
