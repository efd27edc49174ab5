//! The issue tracker of a repository.

use std::sync::Arc;

use ralph_core::ports::IssueTracker;
use ralph_core::repo_address::RemoteRepo;

use crate::app::App;
use crate::error::AppError;

/// Connects to the issues of a repository.
#[expect(
    clippy::unused_async,
    reason = "the credential is searched in keyrings"
)]
pub(crate) async fn issue_tracker(
    repo: &RemoteRepo,
    _app: &App,
) -> Result<Arc<dyn IssueTracker>, AppError> {
    Err(AppError::runtime(
        format!("the issues of `{}` are not available", repo.full_name()),
        "this version has no client for issues",
        "upgrade ralph",
    ))
}
