//! GitHub, and servers with its API.
//!
//! - [`GitHubHost`] is the source host: pull requests, checks, reviews and issues, one file each.
//! - [`GitHubClient`] sends its requests. [`GitHubCredential`] is a token, or the key of a GitHub App, whose
//!   tokens it creates and refreshes.
//! - `transport` knows limits, redirects and repetitions, `pace` the waits between requests, `etag`
//!   remembers responses, `error` finds the kind of a failure.
//! - `operations` defines the parts of responses that ralph reads, `permissions` the needed ones.

mod app_key;
mod checks;
mod client;
mod error;
mod etag;
mod host;
mod issues;
mod open_pulls;
mod operations;
mod pace;
mod permissions;
mod pulls;
mod response;
mod reviews;
mod token;
mod transport;

pub use app_key::{AppKey, AppKeyError};
pub use client::{GitHubClient, GitHubConnection};
pub use host::GitHubHost;
pub use operations::{GitHubBranch, GitHubRepository, GitHubUser, ReadableResource, RegisteredApp};
pub use pace::{GitHubTiming, TokenPace};
pub use permissions::{
    GrantedAccess, PermissionCheck, access_of_installation, access_of_scopes, compare,
    needed_names, probe_of,
};
pub use response::{GitHubReply, RateLimit};
pub use token::{GitHubCredential, GitHubTokenSource};
