//! What a run does before it starts: removes sandboxes that nobody can use any more.

use ralph_core::plan::RunPlan;

use super::keeper::Keeper;
use super::rule::Patience;
use super::sweep::{Fate, Mode, sweep};
use crate::wire::Wiring;

/// Removes the orphans of the provider that a run is about to use, and returns what a person should
/// know about it. Nothing that goes wrong here stops the run.
pub(in crate::cli) async fn tidy_up(plan: &RunPlan, wiring: &Wiring) -> Vec<String> {
    let keeper = match plan.sandbox.as_str() {
        "docker" => Keeper::docker(
            plan.container.as_ref().and_then(|c| c.engine.clone()),
            wiring,
        ),
        _ => Keeper::local(wiring),
    };
    let swept = match sweep(&keeper, &Patience::of_a_run(), Mode::Remove, wiring).await {
        Ok(swept) => swept,
        Err(problem) => {
            return vec![format!(
                "could not look for stale sandboxes: {} — {}",
                problem.what, problem.fix
            )];
        }
    };
    swept
        .into_iter()
        .filter_map(|swept| match swept.fate {
            Fate::Kept(_) => None,
            Fate::Removed(why) => Some(format!("removed the sandbox `{}`: {why}", swept.id)),
            Fate::Stuck(why, problem) => Some(format!(
                "could not remove the sandbox `{}`: {why}, but {}",
                swept.id, problem.what
            )),
        })
        .collect()
}
