//! The delivery of a run: `publish` pushes the branch and updates the pull request, `verify` judges
//! a commit in clean rooms, `test_changes` examines changed tests, `pull_body` writes the text of
//! the pull request, `state_ref` saves the run's files under `refs/ralph/<task_id>`.

mod branch_findings;
mod publish;
mod pull_body;
mod saved_files;
mod state_ref;
mod test_changes;
mod test_counts;
mod verify;

pub(crate) use publish::DeliveryOutcome;
pub(crate) use publish::deliver;
pub(crate) use publish::{deliver_remaining, finish_approved};
pub(crate) use saved_files::{SNAPSHOT_FILE, SnapshotManifest};
pub(crate) use state_ref::{SaveProgress, save_state};
pub(crate) use test_changes::approved_by_resuming;
pub(crate) use verify::contract_checks;
