//! A source host without a credential: for commands that do not need it.

use async_trait::async_trait;
use ralph_core::ports::{HostError, HostErrorKind, PullDraft, PullRequest, Scm, ScmError};
use ralph_core::repo_address::RemoteRepo;

/// A source host whose operations return the reason why there is no credential.
pub struct AbsentScm {
    remote: String,
    message: String,
}

impl AbsentScm {
    /// Returns the host of a repository; `message` is the reason.
    pub fn new(repo: &RemoteRepo, message: String) -> Self {
        Self {
            remote: repo.to_string(),
            message,
        }
    }

    fn error(&self) -> ScmError {
        let kind = HostErrorKind::Unauthorized {
            message: self.message.clone(),
        };
        ScmError::Host(HostError {
            request: format!("a request for {}", self.remote),
            request_id: None,
            kind,
        })
    }
}

#[async_trait]
impl Scm for AbsentScm {
    fn name(&self) -> &'static str {
        "github"
    }

    fn remote(&self) -> &str {
        &self.remote
    }

    async fn check_push(&self, _branch: &str) -> Result<(), ScmError> {
        Err(self.error())
    }

    async fn find(&self, _head: &str) -> Result<Option<PullRequest>, ScmError> {
        Err(self.error())
    }

    async fn open(&self, _draft: &PullDraft) -> Result<PullRequest, ScmError> {
        Err(self.error())
    }

    async fn update(&self, _number: u64, _draft: &PullDraft) -> Result<PullRequest, ScmError> {
        Err(self.error())
    }
}
