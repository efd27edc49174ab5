//! Source hosts from the user's point of view: is a repository usable, and with which credential?
//!
//! - [`check_repository`] is `ralph scm check`. Its result is a [`ScmReport`].
//! - `credential` searches the places of a GitHub credential, `failure` explains errors of the API.

mod check;
mod credential;
mod failure;
mod issue_tracker;
mod report;

pub use crate::providers::github::{GrantedAccess, PermissionCheck};
pub use check::check_repository;
pub(crate) use issue_tracker::issue_tracker;
pub use report::{GitHubReport, LocalReport, ScmReport};
