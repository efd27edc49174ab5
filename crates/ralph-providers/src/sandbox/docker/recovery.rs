//! Diagnoses a container that stopped responding, and restarts it.

use std::time::Duration;

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status};
use ralph_core::ports::{ProviderProblem, SandboxError, SandboxId};
use ralph_guest::best_effort;
use tokio::time::{Instant, sleep};

use super::container::{Container, ContainerError};
use super::guest_connection::GuestConnection;

/// Time limit for an engine that is being restarted.
const ENGINE_RETRY_LIMIT: Duration = Duration::from_mins(1);
/// Retry interval in the meantime.
const ENGINE_RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// Time for the Docker Engine to notice that a container has ended.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that another ralph process may need between removing a container and creating its own.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll interval in the meantime.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The state of a sandbox after an interruption.
#[derive(Debug)]
pub(super) enum Recovery {
    /// It works again; the outcome of the interrupted operation is unknown.
    Restarted(GuestConnection, String),
    /// It was removed.
    Gone,
    /// It could not be restarted.
    Failed(SandboxError),
}

/// How the connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionFailure {
    /// The connection ended.
    Closed,
    /// No data within the time limit.
    Silent,
}

/// Diagnoses a container that does not respond, and restarts it.
pub(super) async fn recover(container: &Container, failure: ConnectionFailure) -> Recovery {
    let state = match wait_until_settled(container, failure).await {
        Ok(state) => state,
        Err(ContainerError::Missing) => return recover_missing(container).await,
        Err(error) => return Recovery::Failed(error.into_sandbox_error(container)),
    };
    let mut why = describe(&state, failure, container.was_out_of_memory());
    why.push_str(&container.log().await);
    if is_alive(&state) {
        // It may still run the interrupted operation, whose result is not read any more.
        best_effort(container.kill().await);
    }
    match container.restart().await {
        Ok(connection) => Recovery::Restarted(connection, why),
        Err(ContainerError::Missing) => recover_missing(container).await,
        Err(error) => Recovery::Failed(error.into_sandbox_error(container)),
    }
}

/// Determines whether a missing container was removed or replaced.
async fn recover_missing(container: &Container) -> Recovery {
    let deadline = Instant::now() + REPLACE_TIMEOUT;
    loop {
        match container.is_replaced().await {
            Ok(true) => {
                return Recovery::Failed(ContainerError::TakenOver.into_sandbox_error(container));
            }
            Ok(false) | Err(_) if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
            Ok(false) => return Recovery::Gone,
            Err(error) => return Recovery::Failed(error.into_sandbox_error(container)),
        }
    }
}

/// Waits for a stable container state: the Docker Engine may be unavailable for a moment, and it
/// notices later than the connection that a container has ended or is being removed.
async fn wait_until_settled(
    container: &Container,
    failure: ConnectionFailure,
) -> Result<ContainerState, ContainerError> {
    let state = state_with_retry(container).await?;
    if failure == ConnectionFailure::Silent {
        return Ok(state);
    }
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    let mut state = state;
    while is_alive(&state) && Instant::now() < deadline {
        sleep(POLL_INTERVAL).await;
        state = container.state().await?;
    }
    while is_stopping(&state) {
        sleep(POLL_INTERVAL).await;
        state = container.state().await?;
    }
    Ok(state)
}

/// Queries the state, retrying while the Docker Engine is unavailable.
async fn state_with_retry(container: &Container) -> Result<ContainerState, ContainerError> {
    let deadline = Instant::now() + ENGINE_RETRY_LIMIT;
    loop {
        match container.state().await {
            Err(ContainerError::Engine(_)) if Instant::now() < deadline => {
                sleep(ENGINE_RETRY_INTERVAL).await;
            }
            state => return state,
        }
    }
}

fn is_alive(state: &ContainerState) -> bool {
    matches!(
        state.status,
        Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING)
    )
}

fn is_stopping(state: &ContainerState) -> bool {
    matches!(state.status, Some(Status::REMOVING))
}

/// Describes the state of a container.
fn describe(state: &ContainerState, failure: ConnectionFailure, was_out_of_memory: bool) -> String {
    let code = state.exit_code.unwrap_or(0);
    match (state.status, failure) {
        (Some(Status::PAUSED), _) => "the sandbox does not respond: its container is paused".into(),
        (Some(Status::RUNNING), ConnectionFailure::Silent) => "the sandbox does not respond".into(),
        (Some(Status::RUNNING), ConnectionFailure::Closed) => {
            "the connection to the sandbox was lost".into()
        }
        (Some(_), _) if state.oom_killed == Some(true) && !was_out_of_memory => {
            "the whole sandbox ran out of memory".into()
        }
        (Some(_), _) if code == 137 && was_out_of_memory => {
            "the sandbox's container was killed from outside, or ran out of memory".into()
        }
        (Some(_), _) if code == 137 => "the sandbox's container was killed from outside".into(),
        (Some(_) | None, _) => format!("the sandbox's container stopped with exit code {code}"),
    }
}

impl ContainerError {
    /// Converts to the port's error.
    pub(super) fn into_sandbox_error(self, container: &Container) -> SandboxError {
        match self {
            Self::Missing => SandboxError::Gone(super::labels::sandbox_id(container.name)),
            Self::Engine(error) => SandboxError::Provider(error.problem()),
            Self::TakenOver => problem(
                container,
                &self,
                "continue the run in that process, or stop it there",
            ),
            Self::Guest { .. } | Self::Socket { .. } => problem(
                container,
                &self,
                "check the Docker Engine with `ralph selftest --type docker`",
            ),
        }
    }
}

fn problem(container: &Container, error: &ContainerError, fix: &str) -> SandboxError {
    let id = super::labels::sandbox_id(container.name);
    SandboxError::Provider(ProviderProblem {
        what: format!("sandbox `{id}` cannot be used: {error}"),
        fix: fix.into(),
    })
}

/// Returns the error for a removed sandbox.
pub(super) fn sandbox_gone(id: &SandboxId) -> SandboxError {
    SandboxError::Gone(id.clone())
}
