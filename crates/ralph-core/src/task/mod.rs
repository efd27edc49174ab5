//! The task file, `ralph_task.md`: settings in the front matter, then the success criteria.
//!
//! [`TaskFile::parse`] validates everything and returns typed values. It decodes and splits the
//! bytes (`split`), parses the front matter into a tree with line numbers (`yaml`) and decodes it
//! into a [`Contract`] (`fields`, `decode`), and parses the body for milestones, checkboxes and
//! verify lines (`body`, `criteria`, `derived_ids`). `box_names` finds the box of a claim. The
//! running time is linear in the size of the file, whatever its content. [`NewTask`] writes the
//! first version of a file.

mod agent_choice;
mod body;
mod box_names;
mod branch;
mod contract;
mod criteria;
mod decode;
mod derived_ids;
mod fields;
mod file;
mod grammar;
pub(crate) mod keys;
mod new_task;
mod repo_url;
mod sentence;
mod split;
mod suggest;
#[cfg(test)]
mod tests;
mod yaml;

pub use agent_choice::AgentChoice;
pub use box_names::{BoxNames, NamedBox};
pub use branch::{BranchName, MAX_BRANCH_BYTES};
pub use contract::{
    Contract, DoctorApply, OnActionError, OnTestChange, PullSettings, RunMode, SandboxKind,
    SandboxResources, VerificationSettings,
};
pub use criteria::{Checkbox, MAX_CHECKBOXES, Milestone};
pub use file::{TaskFile, TicksInCopy};
pub use new_task::{NewTask, NewTaskWorker, SpendingLimit};
pub(crate) use new_task::{code_span, push_comment, push_line, quoted};
pub use repo_url::{RepoUrl, RepoUrlError};
pub use sentence::{SentenceError, TaskSentence};
pub use split::{MAX_FRONT_MATTER_BYTES, MAX_TASK_BYTES};
pub use suggest::nearest;
