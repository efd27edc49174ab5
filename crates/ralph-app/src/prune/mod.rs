//! Removes sandboxes that no run can use any more.
//!
//! - `retention` decides from known facts, `inventory` lists and removes the sandboxes of one provider,
//!   `run_status` finds the status of each one's run, `sweep` combines them.
//! - `orphaned` finds workspaces whose run has no directory.
//! - [`prune_sandboxes`] serves the user's request, `automatic` cleans up before a run, `run_sandboxes` removes
//!   those of one run.

mod automatic;
mod inventory;
mod orphaned;
mod report;
mod retention;
mod run_sandboxes;
mod run_status;
mod sweep;

pub(crate) use automatic::prune_orphans;
pub use orphaned::OrphanedSandbox;
pub(crate) use orphaned::OrphanedSandboxes;
pub use report::{PruneEntry, PruneReport, PruneRequest, prune_sandboxes};
pub use retention::OrphanPolicy;
pub(crate) use run_sandboxes::RunSandboxes;
