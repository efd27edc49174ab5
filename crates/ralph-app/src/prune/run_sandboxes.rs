//! The sandboxes of one run, for the user who removes the run or its result.

use ralph_core::id::RunId;
use ralph_core::plan::ContainerPlan;
use ralph_core::ports::{ProviderProblem, SandboxId};

use super::inventory::{ListedSandbox, SandboxInventory};
use super::retention::StateDirOwner;
use crate::error::AppError;
use crate::providers::Providers;

/// The existing sandboxes of a run.
pub(crate) struct RunSandboxes {
    inventory: SandboxInventory,
    ids: Vec<SandboxId>,
}

impl RunSandboxes {
    /// Finds the sandboxes with the run's label: containers, if the run was planned with one,
    /// otherwise local ones.
    pub(crate) async fn find(
        run: &RunId,
        container: Option<&ContainerPlan>,
        providers: &Providers,
    ) -> Result<Self, AppError> {
        let inventory = match container {
            Some(container) => SandboxInventory::docker(container.engine.clone(), providers),
            None => SandboxInventory::local(providers),
        };
        let listed = inventory.list(providers).await;
        let listed = listed.map_err(|problem| cannot_remove(run.as_str(), problem))?;
        let is_own = |sandbox: &ListedSandbox| {
            sandbox.state_dir_owner == StateDirOwner::Own
                && sandbox.labels.get("run").map(String::as_str) == Some(run.as_str())
        };
        let ids = listed.into_iter().filter(is_own);
        let ids = ids.map(|sandbox| sandbox.id).collect();
        Ok(Self { inventory, ids })
    }

    /// Returns the names of the sandboxes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(|id| id.0.as_str())
    }

    /// Removes all of them, and returns their names. The caller owns the run.
    pub(crate) async fn remove(self) -> Result<Vec<String>, AppError> {
        let mut removed = Vec::new();
        for id in self.ids {
            let name = id.to_string();
            let ended = self.inventory.remove(&id).await;
            ended.map_err(|problem| cannot_remove(&name, problem))?;
            removed.push(name);
        }
        Ok(removed)
    }
}

fn cannot_remove(name: &str, problem: ProviderProblem) -> AppError {
    let what = format!("cannot remove the sandbox of `{name}`");
    AppError::runtime(what, problem.what, problem.fix)
}
