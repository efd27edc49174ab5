//! Finds out what became of a container that stopped answering, and brings it back.

use std::time::Duration;

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status};
use ralph_core::ports::{ProviderProblem, SandboxError, SandboxId};
use ralph_guest::best_effort;
use tokio::time::{Instant, sleep};

use super::container::{Container, ContainerError};
use super::guest_connection::GuestConnection;

/// How long an engine that is being restarted is waited for.
const ENGINE_RETRY_LIMIT: Duration = Duration::from_mins(1);
/// How often it is called meanwhile.
const ENGINE_RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How long an engine may take to notice that a container has ended.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long another ralph that takes a sandbox over may need from removing a container to making one.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(1);
/// How often it is looked meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What became of a sandbox in the middle of something.
#[derive(Debug)]
pub(super) enum Recovery {
    /// It works again; what it was doing is unknown.
    Restarted(GuestConnection, String),
    /// Somebody removed it.
    Gone,
    /// It does not come back.
    Failed(SandboxError),
}

/// Why a sandbox is looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionFailure {
    /// The connection ended.
    Closed,
    /// Nothing came for longer than it may take.
    Silent,
}

/// Looks at a container that does not answer, and starts it again.
pub(super) async fn recover(container: &Container, symptom: ConnectionFailure) -> Recovery {
    let state = match wait_until_settled(container, symptom).await {
        Ok(state) => state,
        Err(ContainerError::Missing) => return recover_missing(container).await,
        Err(error) => return Recovery::Failed(error.into_sandbox_error(container)),
    };
    let mut why = describe(&state, symptom, container.was_out_of_memory());
    why.push_str(&container.log().await);
    if is_alive(&state) {
        // It could still answer some time; nobody wants to hear that any more.
        best_effort(container.kill().await);
    }
    match container.restart().await {
        Ok(line) => Recovery::Restarted(line, why),
        Err(ContainerError::Missing) => recover_missing(container).await,
        Err(error) => Recovery::Failed(error.into_sandbox_error(container)),
    }
}

/// Says whether a container that is not there any more was removed or exchanged.
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

/// Asks what became of a container: the engine may be away for a moment, and it notices later than
/// we do that a container has ended, or is on its way out.
async fn wait_until_settled(
    container: &Container,
    symptom: ConnectionFailure,
) -> Result<ContainerState, ContainerError> {
    let state = state_with_retry(container).await?;
    if symptom == ConnectionFailure::Silent {
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

/// Asks the engine, which may be away for a moment.
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

/// Says what is seen of a container.
fn describe(state: &ContainerState, symptom: ConnectionFailure, starved_before: bool) -> String {
    let code = state.exit_code.unwrap_or(0);
    match (state.status, symptom) {
        (Some(Status::PAUSED), _) => "the sandbox does not respond: its container is paused".into(),
        (Some(Status::RUNNING), ConnectionFailure::Silent) => "the sandbox does not respond".into(),
        (Some(Status::RUNNING), ConnectionFailure::Closed) => {
            "the connection to the sandbox was lost".into()
        }
        (Some(_), _) if state.oom_killed == Some(true) && !starved_before => {
            "the sandbox ran out of memory as a whole".into()
        }
        (Some(_), _) if code == 137 && starved_before => {
            "the sandbox's container was killed from outside, or for lack of memory".into()
        }
        (Some(_), _) if code == 137 => "the sandbox's container was killed from outside".into(),
        (Some(_) | None, _) => format!("the sandbox's container stopped with exit code {code}"),
    }
}

impl ContainerError {
    /// Says it in the port's terms.
    pub(super) fn into_sandbox_error(self, container: &Container) -> SandboxError {
        match self {
            Self::Missing => SandboxError::Gone(super::labels::sandbox_id(container.name)),
            Self::Engine(error) => SandboxError::Provider(error.problem()),
            Self::TakenOver => problem(
                container,
                &self,
                "go on with the run there, or stop it there",
            ),
            Self::Guest { .. } | Self::Door { .. } => problem(
                container,
                &self,
                "look at the engine with `ralph selftest --type docker`",
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

/// Says that a sandbox is gone for good.
pub(super) fn sandbox_gone(id: &SandboxId) -> SandboxError {
    SandboxError::Gone(id.clone())
}
