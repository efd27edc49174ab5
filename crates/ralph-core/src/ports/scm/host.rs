//! The abilities of a source host on the network.

use async_trait::async_trait;

use super::{
    CheckReport, CommitStatus, HostCheck, IssueTracker, PullRequest, PullReview, ScmError,
};
use crate::id::CommitId;

/// The access of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAccess {
    /// The login of the account, or the name of the App.
    pub account: String,
    /// The permissions that a run needs and the credential lacks, in the host's notation.
    pub missing: Vec<String>,
}

/// A repository of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRepository {
    /// The current `owner/name`.
    pub full_name: String,
    pub default_branch: String,
    pub private: bool,
    pub archived: bool,
    /// Whether the credential may push; `None` if the host does not say.
    pub can_push: Option<bool>,
}

/// A branch of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostBranch {
    pub head: CommitId,
    pub protected: bool,
}

/// An open pull request of anyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPull {
    pub number: u64,
    pub url: String,
    pub title: String,
    /// The branch with the changes; `owner:branch` if it is in a fork.
    pub head: String,
    /// The branch to merge into.
    pub base: String,
    /// The paths of the changed files; at most 300, sorted.
    pub files: Vec<String>,
}

/// A host with checks, reviews, and the pull requests of others.
#[async_trait]
pub trait SourceHost: Send + Sync {
    /// Checks the credential and its permissions for a run.
    async fn validate(&self) -> Result<HostAccess, ScmError>;
    /// Returns the repository under its current name.
    async fn repository(&self) -> Result<HostRepository, ScmError>;
    /// Returns a branch; `None` if it does not exist.
    async fn branch(&self, name: &str) -> Result<Option<HostBranch>, ScmError>;
    /// Returns a pull request with its current state.
    async fn pull(&self, number: u64) -> Result<PullRequest, ScmError>;
    /// Returns the newest pull request of a branch in any state, if there is one.
    async fn last_pull_of(&self, head: &str) -> Result<Option<PullRequest>, ScmError>;
    /// Returns the open pull requests with their files, at most 300.
    async fn open_pulls(&self) -> Result<Vec<OpenPull>, ScmError>;
    /// Returns the reviews of a pull request, oldest first.
    async fn reviews(&self, number: u64) -> Result<Vec<PullReview>, ScmError>;
    /// Returns the checks and statuses of a commit.
    async fn checks(&self, commit: &CommitId) -> Result<CheckReport, ScmError>;
    /// Returns the end of a failed check's log, or its output and annotations if logs are not
    /// permitted; at most `max_bytes`.
    async fn failure_output(&self, check: &HostCheck, max_bytes: usize)
    -> Result<String, ScmError>;
    /// Sets a status of a commit.
    async fn set_status(&self, commit: &CommitId, status: &CommitStatus) -> Result<(), ScmError>;
    /// Returns the issues of the repository. Comments on a pull request are comments on the issue
    /// with its number.
    fn issues(&self) -> &dyn IssueTracker;
}
