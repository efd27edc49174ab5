//! The delivery of a run: `publish` pushes the branch and updates the pull request, `verify` judges
//! a commit in clean rooms, `test_changes` examines changed tests, `pull_request` opens and updates the pull
//! request with the text of `pull_body`, `state_ref` saves the run's files under `refs/ralph/<task_id>`. At a host on the
//! network, `ci` waits for the checks of a commit, `commit_status` reports the clean room there, `reviews` reads reviews, `surroundings` compares
//! the run with other pull requests, and `host_request` repeats requests while the host is not
//! available.

mod branch_findings;
mod ci;
mod commit_status;
mod host_request;
#[cfg(test)]
mod host_tests;
#[cfg(test)]
mod outage_tests;
mod publish;
mod pull_body;
mod pull_request;
mod reviews;
mod saved_files;
mod state_ref;
mod surroundings;
mod test_changes;
mod test_counts;
mod verify;

pub(crate) use publish::DeliveryOutcome;
pub(crate) use publish::deliver;
pub(crate) use publish::{deliver_remaining, finish_approved};
pub(crate) use saved_files::{SNAPSHOT_FILE, SnapshotManifest};
pub(crate) use state_ref::{SaveProgress, save_state};
pub(crate) use surroundings::Surroundings;
pub(crate) use test_changes::approved_by_resuming;
pub(crate) use verify::contract_checks;
