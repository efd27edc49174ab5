//! Checks everything that a run needs, all of it at once, and changes nothing. `ralph preflight` and
//! the start of a run use the same list of checks, `ralph selftest` those of the machine.
//!
//! - `check` is the list of checks; a new one is a variant there.
//! - `preflight_context` is what they inspect, read once.
//! - `machine`, `project`, `agent`, `network` and `sandbox` contain the checks themselves.

mod agent;
mod check;
pub(super) mod machine;
mod network;
mod preflight_context;
mod project;
pub(super) mod sandbox;

use std::path::PathBuf;

use self::check::{PreflightCheck, StartEffect};
pub(super) use self::preflight_context::PreflightContext;
use super::outcome::{CheckOutcome, CheckSink};
use crate::app::App;
use crate::error::AppError;
use crate::planning::RunRequest;

pub(super) use agent::describe_credential;
pub(super) use network::describe_policy;

/// What the checks found before a run starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartFindings {
    /// The reasons to refuse the start.
    pub errors: Vec<AppError>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// Runs the same checks before a run starts.
pub async fn check_start(request: &RunRequest, app: &App) -> StartFindings {
    let file = Some(request.file.clone());
    let context = PreflightContext::load(file, request.clone(), app).await;
    let (mut errors, mut notices) = (Vec::new(), Vec::new());
    for check in PreflightCheck::ALL {
        let effect = check.start_effect();
        if effect == StartEffect::OwnStep {
            continue;
        }
        let Some(CheckOutcome::Failed(found)) = check.run(&context).await else {
            continue;
        };
        match effect {
            StartEffect::Refuse => errors.extend(found),
            StartEffect::Warn | StartEffect::OwnStep => {
                notices.extend(found.iter().map(ToString::to_string));
            }
        }
    }
    StartFindings { errors, notices }
}

/// Checks everything that a run of this request needs. Without `file`, checks the default task file
/// if it exists.
pub async fn run_preflight(
    file: Option<PathBuf>,
    request: RunRequest,
    app: &App,
    checks: &mut dyn CheckSink,
) -> Result<(), AppError> {
    let context = PreflightContext::load(file, request, app).await;
    let mut reported = Vec::new();
    for check in PreflightCheck::ALL {
        match check.run(&context).await {
            Some(outcome) => checks.add(check.name(), outcome.without(&mut reported))?,
            None => {
                if let Some(why) = check.skip_reason() {
                    checks.note(why.to_owned())?;
                }
            }
        }
    }
    Ok(())
}
