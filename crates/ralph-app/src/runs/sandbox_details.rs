//! The sandbox of a run: its isolation, its limits and the resources in use.

use ralph_core::plan::{ContainerPlan, LocalPlan};
use ralph_core::ports::Isolation;
use ralph_core::state::RunState;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use super::removal::disk_use;
use crate::app::App;
use crate::error::AppError;

/// The sandbox of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SandboxDetails {
    /// The provider's name of the sandbox; `None` if there is none now.
    pub id: Option<String>,
    pub provider: String,
    pub isolation: Isolation,
    pub state: SandboxState,
    /// The clean rooms that exist now.
    pub clean_rooms: Vec<String>,
    /// The image and the limits of a container.
    pub container: Option<ContainerPlan>,
    /// The limits and the protection of commands that run as the user.
    pub local: Option<LocalPlan>,
    /// The protection of a local sandbox in words.
    pub protection: Vec<String>,
    /// The disk space of a local sandbox, in bytes; `None` for others.
    pub disk_bytes: Option<u64>,
}

/// The state of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// The run has none.
    Absent,
    /// The repository is not in it yet.
    Preparing,
    /// A process works in it.
    InUse,
    /// It exists, and no process works in it.
    Idle,
}

/// Describes the sandbox of a run.
pub fn sandbox_details(
    dir: &RunDir,
    state: &RunState,
    app: &App,
) -> Result<SandboxDetails, AppError> {
    let plan = &state.plan;
    let protection = plan.local.map(|local| {
        let confinement = local.confinement;
        vec![
            confinement.describe_isolation(),
            confinement.describe_limits(),
        ]
    });
    let disk_bytes = match (&state.sandbox, plan.local) {
        (Some(id), Some(_)) => Some(disk_use(&app.state_dir()?.sandboxes().join(&id.0))),
        (_, _) => None,
    };
    Ok(SandboxDetails {
        id: state.sandbox.as_ref().map(ToString::to_string),
        provider: plan.sandbox.clone(),
        isolation: plan.isolation,
        state: match (&state.sandbox, state.workspace_ready, dir.is_held()) {
            (None, _, _) => SandboxState::Absent,
            (Some(_), false, _) => SandboxState::Preparing,
            (Some(_), true, true) => SandboxState::InUse,
            (Some(_), true, false) => SandboxState::Idle,
        },
        clean_rooms: state.clean_rooms.iter().map(ToString::to_string).collect(),
        container: plan.container.clone(),
        local: plan.local,
        protection: protection.unwrap_or_default(),
        disk_bytes,
    })
}
