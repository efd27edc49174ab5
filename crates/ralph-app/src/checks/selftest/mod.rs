//! Creates a real sandbox on this machine, tests the features that a run relies on, and cleans up.
//!
//! - `docker` and `local` contain the checks of each provider.
//! - `account` is the tested agent with its credential, `gate` its gate, `auth` the login through
//!   the gate, and `fake_provider` a replacement for the provider.
//! - `session` is the tested sandbox, `basics` the checks that every provider passes, `isolation`
//!   those of a provider that isolates.

mod account;
mod auth;
mod basics;
mod docker;
mod fake_provider;
mod gate;
mod image;
mod interrupts;
mod isolation;
mod local;
mod session;

use tokio::sync::watch;

use super::outcome::{CheckOutcome, CheckSink};
use crate::app::App;
use crate::error::AppError;
use crate::providers::LocalOrDocker;

pub use image::load_project_config;

/// The first check of every provider.
const PREREQUISITES: &str = "prerequisites";

/// A request to test a sandbox provider.
#[derive(Debug, Clone)]
pub struct SelftestRequest {
    pub provider: LocalOrDocker,
    /// The coding agent that logs in; `None` selects the default.
    pub agent: Option<String>,
    /// Whether a server in this process answers instead of the agent's provider.
    pub offline: bool,
    /// Ends the test and removes its sandbox when it becomes true.
    pub cancelled: watch::Receiver<bool>,
}

/// Tests a sandbox provider.
pub async fn run_selftest(
    request: &SelftestRequest,
    app: &App,
    checks: &mut dyn CheckSink,
) -> Result<(), AppError> {
    match request.provider {
        LocalOrDocker::Docker => Box::pin(docker::run(request, checks, app)).await,
        LocalOrDocker::Local => Box::pin(local::run(request, checks, app)).await,
    }
}

/// Reports checks that were not run.
fn skip_checks(
    checks: &mut dyn CheckSink,
    names: &[&'static str],
    why: &str,
) -> Result<(), AppError> {
    for name in names {
        checks.add(name, CheckOutcome::NotRun(why.to_owned()))?;
    }
    Ok(())
}
