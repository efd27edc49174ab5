//! Checks everything that a run needs, all of it at once, and changes nothing.
//!
//! - `check` is the list of checks; a new one is a variant there.
//! - `preflight_context` is what they inspect, read once.
//! - `machine`, `project`, `agent`, `network` and `sandbox` contain the checks themselves.

mod agent;
mod check;
mod machine;
mod network;
mod preflight_context;
mod project;
mod sandbox;

use std::path::PathBuf;

use self::check::PreflightCheck;
use self::preflight_context::PreflightContext;
use super::outcome::CheckSink;
use crate::app::App;
use crate::error::AppError;
use crate::planning::RunRequest;

pub(super) use agent::describe_credential;
pub(super) use network::{describe_policy, gate_error};

/// Checks everything that a run of this request needs. Without `file`, checks the default task file
/// if it exists.
pub async fn run_preflight(
    file: Option<PathBuf>,
    request: RunRequest,
    app: &App,
    checks: &mut dyn CheckSink,
) -> Result<(), AppError> {
    let ground = PreflightContext::load(file, request, app).await;
    for check in PreflightCheck::ALL {
        match check.run(&ground).await {
            Some(outcome) => checks.add(check.name(), outcome)?,
            None => {
                if let Some(why) = check.skip_reason() {
                    checks.note(why.to_owned())?;
                }
            }
        }
    }
    Ok(())
}
