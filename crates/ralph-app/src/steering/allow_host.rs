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

/// The effect of an allowed host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowReport {
    /// The effect on the run; `None` if it has ended.
    pub effect: Option<String>,
    /// The change in the project's file.
    pub listed: Option<AllowedHost>,
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

/// Allows the host for the run and, if wanted, in the file of the project that `project` works in. For
/// a run that has ended, only the latter is possible.
pub async fn allow_host(
    dir: &RunDir,
    host: &AllowlistEntry,
    scope: AllowScope,
    (app, project): (&App, &App),
) -> Result<AllowReport, AppError> {
    let is_over = dir.state()?.status.is_final();
    let effect = if is_over && scope == AllowScope::Project {
        None
    } else {
        Some(allow_for_run(dir, host, app).await?)
    };
    let listed = match scope {
        AllowScope::Run => None,
        AllowScope::Project => {
            let listed = allow_host_in_project(project.environment().working_dir(), host)?;
            approve_host(host, project)?;
            Some(listed)
        }
    };
    Ok(AllowReport { effect, listed })
}

async fn allow_for_run(dir: &RunDir, host: &AllowlistEntry, app: &App) -> Result<String, AppError> {
    let command = Command::AllowHost {
        host: host.to_string(),
    };
    match Box::pin(send_command(dir, command.clone(), app)).await? {
        SentCommandOutcome::Done(done) if done.succeeded => Ok(done.detail),
        SentCommandOutcome::Done(done) => Err(refused_error(&dir.state()?, &command, &done.detail)),
        SentCommandOutcome::Deferred => Ok(format!("commands can reach `{host}` once it resumes")),
    }
}
