//! Removes unusable sandboxes before a run starts.

use ralph_core::plan::RunPlan;

use super::inventory::SandboxInventory;
use super::retention::RetentionPolicy;
use super::sweep::{SweepMode, SweepOutcome, sweep};
use crate::providers::Providers;

/// Removes the orphans of a run's sandbox provider and returns notices for the user. No error here
/// prevents the run.
pub(crate) async fn prune_orphans(plan: &RunPlan, providers: &Providers) -> Vec<String> {
    let inventory = match plan.sandbox.as_str() {
        "docker" => SandboxInventory::docker(
            plan.container.as_ref().and_then(|c| c.engine.clone()),
            providers,
        ),
        _ => SandboxInventory::local(providers),
    };
    let swept = match sweep(
        &inventory,
        &RetentionPolicy::for_run_start(),
        SweepMode::Remove,
        providers,
    )
    .await
    {
        Ok(swept) => swept,
        Err(problem) => {
            return vec![format!(
                "cannot search for stale sandboxes: {} — {}",
                problem.what, problem.fix
            )];
        }
    };
    swept
        .into_iter()
        .filter_map(|swept| match swept.outcome {
            SweepOutcome::Kept(_) => None,
            SweepOutcome::Removed(why) => {
                Some(format!("removed the sandbox `{}`: {why}", swept.id))
            }
            SweepOutcome::Failed(why, problem) => Some(format!(
                "cannot remove the sandbox `{}`: {why}, but {}",
                swept.id, problem.what
            )),
        })
        .collect()
}
