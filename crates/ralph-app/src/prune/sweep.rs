//! Goes through the sandboxes of a provider and removes what is stale.

use ralph_core::ports::{ProviderProblem, SandboxId};

use super::inventory::{ListedSandbox, SandboxInventory};
use super::retention::{
    self, KeepReason, PruneCandidate, PruneVerdict, RemovalReason, RetentionPolicy,
    SandboxRunStatus,
};
use super::run_status;
use crate::providers::Providers;

/// Whether anything is really removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepMode {
    /// It is.
    Remove,
    /// It is only told.
    DryRun,
}

/// One sandbox, and what became of it.
#[derive(Debug)]
pub(super) struct SweptSandbox {
    pub(super) provider: &'static str,
    pub(super) id: SandboxId,
    pub(super) run: Option<String>,
    pub(super) outcome: SweepOutcome,
}

/// What became of a sandbox.
#[derive(Debug)]
pub(super) enum SweepOutcome {
    Kept(KeepReason),
    Removed(RemovalReason),
    /// It is stale and still there.
    Failed(RemovalReason, ProviderProblem),
}

/// Goes through all sandboxes of a provider.
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
    // Somebody may have taken the run up since; as long as it is held here, nobody can.
    let (standing, _lock) = run_status::lock_and_inspect(seen, wiring);
    match judge(standing) {
        PruneVerdict::Keep(why) => SweepOutcome::Kept(why),
        PruneVerdict::Remove(why) => match keeper.remove(&seen.id).await {
            Ok(()) => SweepOutcome::Removed(why),
            Err(problem) => SweepOutcome::Failed(why, problem),
        },
    }
}
