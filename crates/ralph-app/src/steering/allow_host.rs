//! Allows commands of a run, and later runs of its project, to reach a host.

use ralph_core::net::AllowlistEntry;
use ralph_core::run::Command;
use ralph_engine::store::RunDir;

use super::send_command::{SentCommandOutcome, send_command};
use super::steer::refused_error;
use crate::app::App;
use crate::config::{AllowedHost, allow_host_in_project};
use crate::error::AppError;
use crate::trust::approve_host;

/// Which runs may reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowScope {
    /// This run.
    Run,
    /// This run, unless it has ended, and later runs of the project.
    Project,
}

/// Parses a host as the user writes it.
pub fn parse_host(text: &str) -> Result<AllowlistEntry, AppError> {
    AllowlistEntry::parse(text).map_err(|error| {
        AppError::usage(
            error.to_string(),
            "",
            "write a host as `example.com`, `*.example.com` or `example.com:8443`",
        )
    })
}

/// Allows a host for a run. Returns the effect; `None` if the run has ended and the host is for later
/// runs.
pub async fn allow_for_run(
    dir: &RunDir,
    host: &AllowlistEntry,
    scope: AllowScope,
    app: &App,
) -> Result<Option<String>, AppError> {
    if scope == AllowScope::Project && dir.state()?.status.is_final() {
        return Ok(None);
    }
    let command = Command::AllowHost {
        host: host.to_string(),
    };
    match Box::pin(send_command(dir, command.clone(), app)).await? {
        SentCommandOutcome::Done(done) if done.succeeded => Ok(Some(done.detail)),
        SentCommandOutcome::Done(done) => Err(refused_error(&dir.state()?, &command, &done.detail)),
        SentCommandOutcome::Deferred => {
            Ok(Some(format!("commands can reach `{host}` once it resumes")))
        }
    }
}

/// Allows a host in the file of the project that `project` works in.
pub fn allow_for_project(host: &AllowlistEntry, project: &App) -> Result<AllowedHost, AppError> {
    let listed = allow_host_in_project(project.environment().working_dir(), host)?;
    approve_host(host, project)?;
    Ok(listed)
}
