//! The source host port: receives branches and hosts pull requests.
//!
//! [`Scm`] is what every host has. [`SourceHost`] adds the abilities of a host on the network, such as
//! checks and the pull requests of others; [`IssueTracker`] its issues.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::id::CommitId;
use crate::secret::Secret;

mod checks;
mod error;
mod host;
mod issues;

pub use checks::{
    CheckConclusion, CheckReport, CommitState, CommitStatus, HostCheck, PullReview, ReviewVerdict,
};
pub use error::{HostError, HostErrorKind, ScmError};
pub use host::{HostAccess, HostBranch, HostRepository, OpenPull, SourceHost};
pub use issues::{HostIssue, IssueLabel, IssueTracker};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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

/// A comment that exists at most once per key, whatever crashes or is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedComment {
    /// Letters, digits and `-`; a hidden marker of the comment contains it.
    pub key: String,
    /// Markdown, already neutralised.
    pub body: String,
}

/// The user name and password of git for one host.
#[derive(Debug)]
pub struct GitLogin {
    pub user: String,
    pub password: Secret,
}

/// Provides the credential of git when git asks for it.
#[async_trait]
pub trait GitCredential: Send + Sync {
    /// Returns a credential that is valid now.
    async fn login(&self) -> Result<GitLogin, ScmError>;
    /// Returns a credential after the host rejected the last one. The source is read once more.
    async fn renew(&self) -> Result<GitLogin, ScmError> {
        self.login().await
    }
}

/// A source host.
#[async_trait]
pub trait Scm: Send + Sync {
    /// Returns the host's name.
    fn name(&self) -> &'static str;
    /// Returns the explicit URL that git pushes to.
    fn remote(&self) -> &str;
    /// Returns the source of git's credential for [`Self::remote`]; `None` if git needs none.
    fn git_credential(&self) -> Option<std::sync::Arc<dyn GitCredential>> {
        None
    }
    /// Returns the abilities of a host on the network.
    fn source_host(&self) -> Option<&dyn SourceHost> {
        None
    }
    /// Waits until pushed commits would survive a power failure, if the repository is on this
    /// machine.
    async fn sync(&self) -> Result<(), ScmError> {
        Ok(())
    }
    /// Checks that a branch may be pushed: it is neither checked out nor protected.
    async fn check_push(&self, branch: &str) -> Result<(), ScmError>;
    /// Returns the open pull request of a branch, or else the newest one, if any.
    async fn find(&self, head: &str) -> Result<Option<PullRequest>, ScmError>;
    /// Opens a pull request, or adopts and updates the one that exists for the branch.
    async fn open(&self, draft: &PullDraft) -> Result<PullRequest, ScmError>;
    /// Updates a pull request. A closed or merged one is returned unchanged.
    async fn update(&self, number: u64, draft: &PullDraft) -> Result<PullRequest, ScmError>;
}
