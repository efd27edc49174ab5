//! Decides with the user whether a run may start.

use std::path::Path;

use ralph_core::task::TaskFile;

use super::unfinished_run::UnfinishedRun;
use crate::app::App;
use crate::error::AppError;
use crate::planning::RunRequest;
use crate::trust::{self, TrustReview};

/// Questions that the start of a run may raise. A front end without a user to ask returns `false`.
pub trait StartQuestions {
    /// Returns whether the user approves the pending proposals of a repository.
    fn approve(&self, review: &TrustReview) -> bool;

    /// Returns whether the user continues the unfinished run of the task.
    fn continue_run(&self, run: &UnfinishedRun) -> bool;
}

/// Whether a missing approval prevents the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalMode {
    /// The run starts, so it needs the approval.
    Require,
    /// Nothing starts; the review is only shown.
    Report,
}

/// Reviews the proposals of a repository that a run would use, and asks the user about those without an
/// approval.
pub async fn require_approval(
    request: &RunRequest,
    task: (&Path, &TaskFile),
    mode: ApprovalMode,
    (app, questions): (&App, &dyn StartQuestions),
) -> Result<TrustReview, AppError> {
    let git = app.providers()?.git()?;
    let mut review = trust::review_run(request, Some(task), &git, app).await?;
    if mode == ApprovalMode::Report || review.is_clear() {
        return Ok(review);
    }
    if review.overreach.is_empty() && questions.approve(&review) {
        app.state_dir()?;
        review.approve()?;
        return Ok(review);
    }
    Err(trust::refusal_error(&review, &request.file, &app.layers()))
}
