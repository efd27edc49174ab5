//! Completes a task file and a request to a plan, without starting or writing anything.
//!
//! - [`RunRequest`] is the request of a front end, [`plan_run`] completes it to a [`PlannedRun`].
//! - [`read_task`] reads and lints the task file, [`SourceRepository`] is the starting point of the
//!   work.
//! - [`worker`] chooses the actions or agent engine and the agent, `sandbox_choice`, [`container`] and [`network`]
//!   the sandbox.
//! - `fallback_agent` checks whether the image of a run contains the fallback agent.
//! - `pinned_settings` stores the configuration in the plan, for processes in other directories.
//! - `host_checks` rejects settings of checks that cannot be met.
//! - [`secrets`] rejects plans and task files with known secrets.

pub(crate) mod agent_script;
pub mod container;
mod effective_settings;
pub(crate) mod fallback_agent;
mod host_checks;
pub mod network;
pub(crate) mod pinned_settings;
mod plan;
mod remote_source;
mod repository;
mod request;
pub(crate) mod sandbox_choice;
pub mod secrets;
mod setup;
mod source_repository;
mod task_file;
mod task_lint;
pub mod worker;

pub use effective_settings::{EffectiveSetting, SettingEntry, SettingSource, effective_settings};
pub use pinned_settings::app_for_run;
pub use plan::random_number;
pub use plan::{PlanPurpose, PlannedRun, model_choice, plan_run, require_git};
pub(crate) use plan::{preview_read_only, provider_errors, resolve_model};
pub(crate) use remote_source::find_remote;
pub use request::{IssueRequest, RunRequest, TASK_FILE};
pub use sandbox_choice::{configured_provider, unavailable_sandbox};
pub use source_repository::{SourceRepository, commit_at, local_path, parse_address, top_level};
pub(crate) use source_repository::{base_commit, current_branch, find_address, free_branch};
pub use task_file::{check_task_text, describe_finding, read_bytes, read_task, read_task_bytes};
pub use task_lint::lint_task;
