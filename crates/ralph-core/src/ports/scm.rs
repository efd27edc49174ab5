//! The source host port: receives branches and hosts pull requests.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::CommitId;

/// The desired content of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullDraft {
    /// The run that owns it; part of the key that prevents a second one.
    pub run: String,
    pub head: String,
    /// The branch to merge into.
    pub base: String,
    /// The commit that `head` points to.
    pub commit: CommitId,
    pub title: String,
    /// Markdown.
    pub body: String,
    pub labels: Vec<String>,
    pub state: PullState,
}

/// The state of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullState {
    /// The run is still in progress.
    Draft,
    /// Ready for review.
    Open,
    /// Its commits are in the target branch.
    Merged,
    /// The user discarded it.
    Closed,
}

impl PullState {
    /// Returns whether it was merged or discarded.
    pub fn is_closed(self) -> bool {
        match self {
            Self::Draft | Self::Open => false,
            Self::Merged | Self::Closed => true,
        }
    }
}

/// A pull request as the host reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub number: u64,
    pub url: String,
    pub state: PullState,
    /// The commit that its branch points to.
    pub head: CommitId,
}

/// Why a source host operation failed.
#[derive(Debug, thiserror::Error)]
pub enum ScmError {
    /// The branch is checked out in the target repository.
    #[error("branch `{branch}` is checked out in `{repo}`")]
    CheckedOut { branch: String, repo: String },
    /// The host or its records are not accessible.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation, such as `read <path>`.
        doing: String,
        source: std::io::Error,
    },
    /// A pull request record cannot be parsed.
    #[error("pull request record `{path}` is damaged: {why}")]
    Damaged { path: String, why: String },
}

/// A source host.
#[async_trait]
pub trait Scm: Send + Sync {
    /// Returns the host's name.
    fn name(&self) -> &'static str;
    /// Returns the explicit URL that git pushes to.
    fn remote(&self) -> &str;
    /// Waits until pushed commits would survive a power failure, if the repository is on this
    /// machine.
    async fn sync(&self) -> Result<(), ScmError> {
        Ok(())
    }
    /// Checks that a branch may be pushed.
    async fn check_push(&self, branch: &str) -> Result<(), ScmError>;
    /// Returns the pull request of a branch, if any.
    async fn find(&self, head: &str) -> Result<Option<PullRequest>, ScmError>;
    /// Opens a pull request, or returns the one that this run already opened for the branch.
    async fn open(&self, draft: &PullDraft) -> Result<PullRequest, ScmError>;
    /// Updates an open pull request.
    async fn update(&self, number: u64, draft: &PullDraft) -> Result<PullRequest, ScmError>;
}
