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
    inventory: &SandboxInventory,
    policy: &RetentionPolicy,
    mode: SweepMode,
    providers: &Providers,
) -> Result<Vec<SweptSandbox>, ProviderProblem> {
    let mut swept = Vec::new();
    for sandbox in inventory.list(providers).await? {
        swept.push(SweptSandbox {
            provider: inventory.name(),
            id: sandbox.id.clone(),
            run: sandbox.labels.get("run").cloned(),
            outcome: sweep_one(&sandbox, inventory, policy, mode, providers).await,
        });
    }
    Ok(swept)
}

async fn sweep_one(
    sandbox: &ListedSandbox,
    inventory: &SandboxInventory,
    policy: &RetentionPolicy,
    mode: SweepMode,
    providers: &Providers,
) -> SweepOutcome {
    let judge = |status: SandboxRunStatus| {
        let candidate = PruneCandidate {
            state_dir_owner: sandbox.state_dir_owner,
            creator: sandbox.creator,
            run_status: status,
            content: sandbox.content(),
            age: sandbox.age,
        };
        retention::decide(&candidate, policy)
    };
    let stale = match judge(run_status::inspect(sandbox, providers)) {
        PruneVerdict::Keep(why) => return SweepOutcome::Kept(why),
        PruneVerdict::Remove(why) => why,
    };
    if mode == SweepMode::DryRun {
        return SweepOutcome::Removed(stale);
    }
    // Another process may have continued the run in the meantime; the lock prevents that from here
    // on.
    let (status, _lock) = run_status::lock_and_inspect(sandbox, providers);
    match judge(status) {
        PruneVerdict::Keep(why) => SweepOutcome::Kept(why),
        PruneVerdict::Remove(why) => match inventory.remove(&sandbox.id).await {
            Ok(()) => SweepOutcome::Removed(why),
            Err(problem) => SweepOutcome::Failed(why, problem),
        },
    }
}
