//! Rebuilds a run whose directory was lost: from the files of its sandbox, which the agent could
//! write, or from a snapshot under `refs/ralph/<task_id>`.
//!
//! The host never runs git in the sandbox's directory: commits arrive as a bundle and pass the same
//! checks as during a run.

mod commits;
mod record;
mod sandbox_copy;
mod saved_run;

pub use commits::{AdoptedCommits, find_base, import_commits};
pub use record::record_adoption;
pub use sandbox_copy::SandboxCopy;
pub use saved_run::{SavedRunError, prepare_repository, restore_commits, restore_files};
