//! The commands that the user may start by id in the mode `debug`.

use ralph_core::debug::{self, DebugTarget};
use ralph_core::state::RunState;
use ralph_engine::contract;
use ralph_engine::store::RunDir;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::AppError;

/// A command of the contract, or a log, that can be requested by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DebugCommand {
    pub id: String,
    /// The pinned command line; `None` for a log.
    pub command: Option<String>,
}

/// Returns the debug commands of the contract in force.
pub fn debug_commands(dir: &RunDir, state: &RunState) -> Result<Vec<DebugCommand>, AppError> {
    let task = contract::load_contract(dir, &state.contract).map_err(|error| {
        AppError::runtime(
            format!("cannot read the contract of run `{}`", state.plan.run),
            error.to_string(),
            "check the run with `ralph audit`",
        )
    })?;
    let ids = debug::ids(&task.contract).into_iter();
    let described = ids.map(|id| {
        let command = match debug::resolve(&task.contract, &id) {
            Ok(DebugTarget::Command(command)) => Some(command),
            Ok(DebugTarget::Log(_)) | Err(_) => None,
        };
        DebugCommand { id, command }
    });
    Ok(described.collect())
}
