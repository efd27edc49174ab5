//! The checks of local sandboxes.

use ralph_core::ports::SandboxProvider;

use super::basics;
use super::command::{Interrupts, PREREQUISITES, leave_out, prerequisites};
use super::docker::interrupted;
use super::session::{Session, broken};
use crate::cli::checks::{Checks, Outcome};
use crate::cli::container;
use crate::cli::context::Context;
use crate::cli::error::CliError;

const MACHINE: &str = "machine";
const CREATE: &str = "create sandbox";
const EXEC: &str = "run a command";
const FILES: &str = "files";
const TIMEOUT: &str = "timeout";
const CLEANUP: &str = "cleanup";

/// What needs a sandbox.
const INSIDE: [&str; 4] = [EXEC, FILES, TIMEOUT, CLEANUP];

/// Tries out local sandboxes.
pub(super) async fn run(checks: &mut Checks, context: &Context) -> Result<(), CliError> {
    let wiring = context.wiring()?;
    checks.add(PREREQUISITES, prerequisites(context).await)?;
    let limits = container::local_limits(None, context)?;
    let provider = wiring.local(limits);
    let outcome = Outcome::of(provider.preflight().await, || {
        wiring.state.sandboxes().display().to_string()
    });
    let is_usable = !outcome.is_failure();
    checks.add(MACHINE, outcome)?;
    checks.note("there is no isolation: commands of local sandboxes run as you".into())?;
    if let Some(confinement) = provider.confinement() {
        checks.note(confinement.walls())?;
        checks.note(confinement.limits())?;
    }
    if !is_usable {
        let why = "this machine cannot be used";
        checks.add(CREATE, Outcome::NotRun(why.into()))?;
        return leave_out(checks, &INSIDE, why);
    }
    inside(checks, &*provider).await
}

async fn inside(checks: &mut Checks, provider: &dyn SandboxProvider) -> Result<(), CliError> {
    let mut interrupts = Interrupts::listen();
    let session = match Session::begin(provider, "selftest").await {
        Ok(session) => session,
        Err(error) => {
            checks.add(CREATE, broken(error))?;
            return leave_out(checks, &INSIDE, "there is no sandbox");
        }
    };
    let tried = interrupts.unless(try_out(checks, &session)).await;
    checks.add(CLEANUP, session.end().await)?;
    tried.unwrap_or_else(|| Err(interrupted()))
}

async fn try_out(checks: &mut Checks, session: &Session<'_>) -> Result<(), CliError> {
    checks.add(CREATE, Outcome::Passed(session.sandbox.id().to_string()))?;
    checks.add(EXEC, basics::exec(session).await)?;
    checks.add(FILES, basics::files(session).await)?;
    checks.add(TIMEOUT, basics::timeout(session).await)
}
