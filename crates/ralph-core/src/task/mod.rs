//! The task file, `ralph_task.md`: settings for the machine, then criteria for everyone.
//!
//! [`TaskFile::parse`] is the edge: what comes out of it is checked and typed. The bytes are
//! cleaned and split (`split`), the front matter is read into a tree that knows its lines (`yaml`)
//! and from there into a [`Contract`] (`fields`, `decode`), the body is read for milestones,
//! checkboxes and verify lines (`body`, `criteria`, `derived`); `named` finds the box that a claim means. All of it takes time in proportion to the
//! file, whatever the file holds.

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
mod repo_url;
mod split;
mod suggest;
#[cfg(test)]
mod tests;
mod yaml;

pub use box_names::{BoxNames, NamedBox};
pub use branch::{BranchName, MAX_BRANCH_BYTES};
pub use contract::{
    Contract, DoctorApply, OnActionError, OnTestChange, PullSettings, RunMode, SandboxKind,
    SandboxResources, VerificationSettings,
};
pub use criteria::{Checkbox, MAX_CHECKBOXES, Milestone};
pub use file::{TaskFile, TicksInCopy};
pub use repo_url::{RepoUrl, RepoUrlError};
pub use split::{MAX_FRONT_MATTER_BYTES, MAX_TASK_BYTES};
pub use suggest::nearest;
