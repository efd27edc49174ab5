//! Source hosts from the user's point of view: is a repository usable, and with which credential?
//!
//! - [`check_repository`] is `ralph scm check`. Its result is a [`ScmReport`].
//! - `credential` searches the places of a GitHub credential, `failure` explains errors of the API.
//! - `connection` opens the access of a run to its repository there; `host_failure` explains its errors.

mod check;
mod connection;
mod credential;
mod failure;
mod host_failure;
mod report;

pub use crate::providers::github::{GrantedAccess, PermissionCheck};
pub use check::check_repository;
pub(crate) use connection::{connect, connect_for_plan};
pub(crate) use host_failure::{host_error, remote_git_error};
pub use report::{
    GitHubCheck, GitHubReport, LocalCheck, LocalReport, ScmCheckReport, ScmCredential,
    ScmPermission, ScmProblem, ScmRateLimit, ScmReport,
};
