//! The parts of GitHub's responses that ralph reads. Other fields are ignored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

/// The user of a token.
#[derive(Debug, Deserialize)]
pub struct GitHubUser {
    pub login: String,
}

/// A GitHub App.
#[derive(Debug, Deserialize)]
pub struct RegisteredApp {
    /// The name in URLs; servers before its introduction do not send it.
    pub slug: Option<String>,
    pub name: String,
}

/// An installation of a GitHub App.
#[derive(Debug, Deserialize)]
pub(super) struct GitHubInstallation {
    pub(super) id: u64,
    pub(super) account: Option<InstallationAccount>,
}

/// The account of an installation; an enterprise has no login.
#[derive(Debug, Deserialize)]
pub(super) struct InstallationAccount {
    pub(super) login: Option<String>,
}

/// The response to the creation of a token. Its `Debug` output would contain the token, so there is
/// none.
#[derive(Deserialize)]
pub(super) struct NewInstallationToken {
    pub(super) token: String,
    pub(super) expires_at: Timestamp,
    #[serde(default)]
    pub(super) permissions: BTreeMap<String, String>,
}

/// A repository.
#[derive(Debug, Deserialize)]
pub struct GitHubRepository {
    /// The current `owner/name`.
    pub full_name: String,
    pub default_branch: String,
    pub private: bool,
    pub archived: bool,
    /// Whether GitHub has disabled the repository.
    pub disabled: bool,
    pub permissions: Option<RepositoryRole>,
}

/// The role of the credential's user in a repository.
#[derive(Debug, Deserialize)]
pub struct RepositoryRole {
    pub push: bool,
}

/// A branch.
#[derive(Debug, Deserialize)]
pub struct GitHubBranch {
    pub protected: bool,
    pub(super) commit: GitHubCommit,
}

/// A commit.
#[derive(Debug, Deserialize)]
pub(super) struct GitHubCommit {
    pub(super) sha: String,
}

/// A resource of a repository with a permission of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadableResource {
    /// The commits of a branch: `contents`.
    Contents,
    /// The pull requests: `pull_requests`.
    PullRequests,
    /// The issues: `issues`.
    Issues,
    /// The check runs of a branch: `checks`.
    Checks,
    /// The commit statuses of a branch: `statuses`.
    Statuses,
    /// The runs of workflows: `actions`.
    WorkflowRuns,
}

impl ReadableResource {
    /// Returns the path below the repository.
    pub(super) fn path(self, branch: &str) -> Vec<&str> {
        match self {
            Self::Contents => vec!["commits", branch],
            Self::PullRequests => vec!["pulls"],
            Self::Issues => vec!["issues"],
            Self::Checks => vec!["commits", branch, "check-runs"],
            Self::Statuses => vec!["commits", branch, "status"],
            Self::WorkflowRuns => vec!["actions", "runs"],
        }
    }

    /// Returns whether the response is a list, whose length can be chosen.
    pub(super) fn is_list(self) -> bool {
        match self {
            Self::PullRequests | Self::Issues | Self::Checks | Self::WorkflowRuns => true,
            Self::Contents | Self::Statuses => false,
        }
    }
}
