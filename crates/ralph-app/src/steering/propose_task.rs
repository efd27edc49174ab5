//! A changed task file for a run: checked and stored before a command puts it in force.

use ralph_core::id::Digest;
use ralph_core::state::RunState;
use ralph_core::task::TaskFile;
use ralph_engine::contract::{self, ContractProposal};
use ralph_engine::store::RunDir;

use crate::app::App;
use crate::error::AppError;

/// A changed task that can be put in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedTask {
    /// The name of the stored contract.
    pub contract: Digest,
    /// The differences to the contract in force, for display.
    pub changes: Vec<String>,
}

/// Compares a task with the contract in force, and stores it. `None` if it is in force already.
pub fn propose_task(
    dir: &RunDir,
    state: &RunState,
    task: &TaskFile,
    app: &App,
) -> Result<Option<ProposedTask>, AppError> {
    let what = format!("cannot change the task of run `{}`", state.plan.run);
    let proposal = contract::propose(dir, &state.contract, task, &app.redactor());
    let proposal =
        proposal.map_err(|error| AppError::runtime(&what, error.to_string(), error.hint()))?;
    match proposal {
        ContractProposal::New { contract, changes } => Ok(Some(ProposedTask { contract, changes })),
        ContractProposal::InForce => Ok(None),
        ContractProposal::ContainsSecret(name) => Err(AppError::usage(
            what,
            format!("the text contains the value of `{name}`"),
            "remove it from the file",
        )),
        ContractProposal::ChangesFixedKey(key) => Err(AppError::usage(
            what,
            format!("`{key}` cannot change while a run is under way"),
            "change it back, or start another run with `ralph run --new`",
        )),
    }
}
