//! Source hosts from the user's point of view: is a repository usable, and with which credential?
//!
//! - [`check_repository`] is `ralph scm check`. Its result is a [`ScmReport`].
//! - `credential` searches the places of a GitHub credential, `permissions` compares the granted
//!   permissions with the needed ones, `failure` explains errors of the API.

mod check;
mod credential;
mod failure;
mod permissions;
mod report;

pub use check::check_repository;
pub use permissions::{GrantedAccess, PermissionCheck};
pub use report::{GitHubReport, LocalReport, ScmReport};
