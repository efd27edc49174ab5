//! Finds out what became of a container that stopped answering, and brings it back.

use std::time::Duration;

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status};
use ralph_core::ports::{Problem, SandboxError, SandboxId};
use tokio::time::{Instant, sleep};

use super::container::{Container, ContainerError};
use super::line::Line;

/// How long an engine that is being restarted is waited for.
const ENGINE_AWAY: Duration = Duration::from_mins(1);
/// How often it is called meanwhile.
const ENGINE_CALL: Duration = Duration::from_millis(250);
/// How long an engine may take to notice that a container has ended.
const SETTLING: Duration = Duration::from_secs(3);
/// How long another ralph that takes a sandbox over may need from removing a container to making one.
const EXCHANGE: Duration = Duration::from_secs(1);
/// How often it is looked meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What became of a sandbox in the middle of something.
#[derive(Debug)]
pub(super) enum Aftermath {
    /// It works again; what it was doing is unknown.
    Revived(Line, String),
    /// Somebody removed it.
    Gone,
    /// It does not come back.
    Lost(SandboxError),
}

/// Why a sandbox is looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symptom {
    /// The connection ended.
    HungUp,
    /// Nothing came for longer than it may take.
    Silent,
}

/// Looks at a container that does not answer, and starts it again.
pub(super) async fn look_after(container: &Container, symptom: Symptom) -> Aftermath {
    let state = match settled(container, symptom).await {
        Ok(state) => state,
        Err(ContainerError::Missing) => return missing(container).await,
        Err(error) => return Aftermath::Lost(error.into_sandbox_error(container)),
    };
    let mut why = words(&state, symptom, container.is_starved());
    why.push_str(&container.log().await);
    if is_alive(&state) {
        // It could still answer some time; nobody wants to hear that any more.
        container.kill().await.ok();
    }
    match container.revive().await {
        Ok(line) => Aftermath::Revived(line, why),
        Err(ContainerError::Missing) => missing(container).await,
        Err(error) => Aftermath::Lost(error.into_sandbox_error(container)),
    }
}

/// Says whether a container that is not there any more was removed or exchanged.
async fn missing(container: &Container) -> Aftermath {
    let deadline = Instant::now() + EXCHANGE;
    loop {
        match container.is_replaced().await {
            Ok(true) => {
                return Aftermath::Lost(ContainerError::TakenOver.into_sandbox_error(container));
            }
            Ok(false) | Err(_) if Instant::now() < deadline => sleep(LOOK_AGAIN).await,
            Ok(false) => return Aftermath::Gone,
            Err(error) => return Aftermath::Lost(error.into_sandbox_error(container)),
        }
    }
}

/// Asks what became of a container: the engine may be away for a moment, and it notices later than
/// we do that a container has ended, or is on its way out.
async fn settled(
    container: &Container,
    symptom: Symptom,
) -> Result<ContainerState, ContainerError> {
    let state = reached(container).await?;
    if symptom == Symptom::Silent {
        return Ok(state);
    }
    let deadline = Instant::now() + SETTLING;
    let mut state = state;
    while is_alive(&state) && Instant::now() < deadline {
        sleep(LOOK_AGAIN).await;
        state = container.state().await?;
    }
    while is_leaving(&state) {
        sleep(LOOK_AGAIN).await;
        state = container.state().await?;
    }
    Ok(state)
}

/// Asks the engine, which may be away for a moment.
async fn reached(container: &Container) -> Result<ContainerState, ContainerError> {
    let deadline = Instant::now() + ENGINE_AWAY;
    loop {
        match container.state().await {
            Err(ContainerError::Engine(_)) if Instant::now() < deadline => {
                sleep(ENGINE_CALL).await;
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

fn is_leaving(state: &ContainerState) -> bool {
    matches!(state.status, Some(Status::REMOVING))
}

/// Says what is seen of a container.
fn words(state: &ContainerState, symptom: Symptom, starved_before: bool) -> String {
    let code = state.exit_code.unwrap_or(0);
    match (state.status, symptom) {
        (Some(Status::PAUSED), _) => "the sandbox does not respond: its container is paused".into(),
        (Some(Status::RUNNING), Symptom::Silent) => "the sandbox does not respond".into(),
        (Some(Status::RUNNING), Symptom::HungUp) => "the connection to the sandbox was lost".into(),
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
            Self::Missing => SandboxError::Gone(super::marks::id(container.name)),
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
    let id = super::marks::id(container.name);
    SandboxError::Provider(Problem {
        what: format!("sandbox `{id}` cannot be used: {error}"),
        fix: fix.into(),
    })
}

/// Says that a sandbox is gone for good.
pub(super) fn gone(id: &SandboxId) -> SandboxError {
    SandboxError::Gone(id.clone())
}
