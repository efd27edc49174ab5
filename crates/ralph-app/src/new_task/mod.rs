//! Creates the first version of a task file from a repository and this machine: `ralph init` writes
//! it into the working directory, `ralph run -p` stores it in the state directory and runs it.
//!
//! - [`ProjectInspection`] is what was found: the repository, its tests, a sandbox and a worker.
//! - `project_files` reads the files that `ralph_core::ecosystem` needs.
//! - `worker_choice` finds an agent with a credential or a model with a key.
//! - [`create_for_run`] stores the task of one sentence.

mod commit_files;
mod inspection;
mod project_files;
mod run_task;
mod sandbox_status;
mod worker_choice;

pub(crate) use commit_files::test_command_at;
pub use inspection::{ProjectInspection, RepositoryStatus, parse_sentence};
pub use run_task::{CreatedTask, create_for_run, store_task_text};
pub use sandbox_status::SandboxStatus;
pub use worker_choice::{WorkerChoice, missing_worker_fix};
