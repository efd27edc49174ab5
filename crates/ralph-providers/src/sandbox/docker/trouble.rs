//! Finds out what became of a container that stopped answering, and brings it back.

use std::time::Duration;

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status};
use ralph_core::ports::{Problem, SandboxError, SandboxId};
use tokio::time::Instant;

use super::container::{Container, ContainerError};
use super::line::Line;

/// How long an engine that is being restarted is waited for.
const ENGINE_AWAY: Duration = Duration::from_mins(1);
/// How often it is called meanwhile.
const CALL_AGAIN: Duration = Duration::from_millis(250);

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
    let state = match state(container).await {
        Ok(state) => state,
        Err(ContainerError::Missing) => return Aftermath::Gone,
        Err(error) => return Aftermath::Lost(error.into_sandbox_error(container)),
    };
    let mut why = words(&state, symptom);
    why.push_str(&container.log().await);
    if symptom == Symptom::Silent {
        // It could still answer some time; nobody wants to hear that any more.
        container.kill().await.ok();
    }
    match container.revive().await {
        Ok(line) => Aftermath::Revived(line, why),
        Err(error) => Aftermath::Lost(error.into_sandbox_error(container)),
    }
}

/// Asks the engine, which may be away for a moment.
async fn state(container: &Container) -> Result<ContainerState, ContainerError> {
    let deadline = Instant::now() + ENGINE_AWAY;
    loop {
        match container.state().await {
            Err(ContainerError::Engine(_)) if Instant::now() < deadline => {
                tokio::time::sleep(CALL_AGAIN).await;
            }
            state => return state,
        }
    }
}

/// Says what is seen of a container.
fn words(state: &ContainerState, symptom: Symptom) -> String {
    let code = state.exit_code.unwrap_or(0);
    match (state.status, symptom) {
        (Some(Status::PAUSED), _) => "the sandbox does not respond: its container is paused".into(),
        (Some(Status::RUNNING), Symptom::Silent) => "the sandbox does not respond".into(),
        (Some(Status::RUNNING), Symptom::HungUp) => "the connection to the sandbox was lost".into(),
        (Some(_), _) if state.oom_killed == Some(true) => {
            "the sandbox ran out of memory as a whole".into()
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
            Self::Guest { .. } | Self::Directory { .. } => SandboxError::Provider(Problem {
                what: format!(
                    "sandbox `{}` cannot be used: {self}",
                    super::marks::id(container.name)
                ),
                fix: "look at the engine with `ralph selftest --type docker`".into(),
            }),
        }
    }
}

/// Says that a sandbox is gone for good.
pub(super) fn gone(id: &SandboxId) -> SandboxError {
    SandboxError::Gone(id.clone())
}
