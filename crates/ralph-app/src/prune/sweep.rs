//! Removes the stale sandboxes of a provider.

use ralph_core::ports::{ProviderProblem, SandboxId};

use super::inventory::{ListedSandbox, SandboxInventory};
use super::retention::{
    self, KeepReason, PruneCandidate, PruneVerdict, RemovalReason, RetentionPolicy,
    SandboxRunStatus,
};
use super::run_status;
use crate::providers::Providers;

/// Whether stale sandboxes are really removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepMode {
    /// Stale sandboxes are removed.
    Remove,
    /// Stale sandboxes are only reported.
    DryRun,
}

/// A sandbox and its result.
#[derive(Debug)]
pub(super) struct SweptSandbox {
    pub(super) provider: &'static str,
    pub(super) id: SandboxId,
    pub(super) run: Option<String>,
    pub(super) outcome: SweepOutcome,
}

/// The result for a sandbox.
#[derive(Debug)]
pub(super) enum SweepOutcome {
    Kept(KeepReason),
    Removed(RemovalReason),
    /// The sandbox is stale but could not be removed.
    Failed(RemovalReason, ProviderProblem),
}

/// Prunes all sandboxes of a provider.
pub(super) async fn sweep(
    keeper: &SandboxInventory,
    patience: &RetentionPolicy,
    mode: SweepMode,
    wiring: &Providers,
) -> Result<Vec<SweptSandbox>, ProviderProblem> {
    let mut swept = Vec::new();
    for seen in keeper.list(wiring).await? {
        swept.push(SweptSandbox {
            provider: keeper.name(),
            id: seen.id.clone(),
            run: seen.labels.get("run").cloned(),
            outcome: sweep_one(&seen, keeper, patience, mode, wiring).await,
        });
    }
    Ok(swept)
}

async fn sweep_one(
    seen: &ListedSandbox,
    keeper: &SandboxInventory,
    patience: &RetentionPolicy,
    mode: SweepMode,
    wiring: &Providers,
) -> SweepOutcome {
    let judge = |standing: SandboxRunStatus| {
        let known = PruneCandidate {
            state_dir_owner: seen.state_dir_owner,
            creator: seen.creator,
            run_status: standing,
            age: seen.age,
        };
        retention::decide(&known, patience)
    };
    let stale = match judge(run_status::inspect(seen, wiring)) {
        PruneVerdict::Keep(why) => return SweepOutcome::Kept(why),
        PruneVerdict::Remove(why) => why,
    };
    if mode == SweepMode::DryRun {
        return SweepOutcome::Removed(stale);
    }
    // Another process may have continued the run in the meantime; the lock prevents that from here
    // on.
    let (standing, _lock) = run_status::lock_and_inspect(seen, wiring);
    match judge(standing) {
        PruneVerdict::Keep(why) => SweepOutcome::Kept(why),
        PruneVerdict::Remove(why) => match keeper.remove(&seen.id).await {
            Ok(()) => SweepOutcome::Removed(why),
            Err(problem) => SweepOutcome::Failed(why, problem),
        },
    }
}
