//! The source host port: where branches are pushed and pull requests live.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::CommitId;

/// What a pull request should say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullDraft {
    /// The run that owns it; part of the key that keeps it from being opened twice.
    pub run: String,
    /// The branch with the work.
    pub head: String,
    /// The branch it should go into.
    pub base: String,
    /// The commit the branch stands at.
    pub commit: CommitId,
    /// The title.
    pub title: String,
    /// The body, in Markdown.
    pub body: String,
    /// The labels.
    pub labels: Vec<String>,
    /// Whether it is still a draft.
    pub state: PullState,
}

/// Whether a pull request is ready to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullState {
    /// Work goes on.
    Draft,
    /// Ready for review.
    Open,
}

/// A pull request as the host knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Where to look at it.
    pub url: String,
    /// Whether it is a draft.
    pub state: PullState,
    /// The commit its branch stands at.
    pub head: CommitId,
}

/// Why the source host could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ScmError {
    /// The branch is checked out where it would be pushed to.
    #[error("branch `{branch}` is checked out in `{repo}`")]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The repository.
        repo: String,
    },
    /// The record or the host could not be reached.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A record is there but cannot be understood.
    #[error("pull request record `{path}` is damaged: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A source host.
#[async_trait]
pub trait Scm: Send + Sync {
    /// Returns its name.
    fn name(&self) -> &'static str;
    /// Returns the explicit URL that git pushes to.
    fn remote(&self) -> &str;
    /// Waits until what was pushed would survive a power cut, where the repository is on this machine.
    async fn sync(&self) -> Result<(), ScmError> {
        Ok(())
    }
    /// Checks that a branch may be pushed.
    async fn check_push(&self, branch: &str) -> Result<(), ScmError>;
    /// Returns the pull request of a branch, if there is one.
    async fn find(&self, head: &str) -> Result<Option<PullRequest>, ScmError>;
    /// Opens a pull request, or returns the one that this run has opened for the branch before.
    async fn open(&self, draft: &PullDraft) -> Result<PullRequest, ScmError>;
    /// Brings an open pull request up to date.
    async fn update(&self, number: u64, draft: &PullDraft) -> Result<PullRequest, ScmError>;
}
