//! GitHub, and servers with its API.
//!
//! - [`GitHubClient`] performs the operations; [`GitHubCredential`] is a token, or the key of a
//!   GitHub App, whose tokens it creates and refreshes.
//! - `transport` sends requests: limits, redirects, pages. [`GitHubError`] is their error.
//! - `operations` defines the requests and the parts of their responses that ralph reads.

mod app_key;
mod client;
mod error;
mod operations;
mod transport;

pub use app_key::{AppKey, AppKeyError};
pub use client::{GitHubClient, GitHubConnection, GitHubCredential};
pub use error::{GitHubError, GitHubErrorKind};
pub use operations::{GitHubBranch, GitHubRepository, GitHubUser, ReadableResource, RegisteredApp};
pub use transport::{GitHubReply, RateLimit};
