//! Decides with the user whether a run may start.

use std::path::Path;

use ralph_core::task::TaskFile;

use super::unfinished_run::UnfinishedRun;
use crate::app::App;
use crate::error::AppError;
use crate::planning::{RunRequest, sandbox_choice};
use crate::trust::{self, TrustReview};

/// Questions that the start of a run may raise. A front end without a user to ask returns `false`.
pub trait StartQuestions {
    /// Returns whether the user approves the pending proposals of a repository.
    fn approve(&self, review: &TrustReview) -> bool;

    /// Returns whether the user lets the agent work without isolation, for this reason.
    fn accept_local(&self, reason: &str) -> bool;

    /// Returns whether the user continues the unfinished run of the task.
    fn continue_run(&self, run: &UnfinishedRun) -> bool;
}

/// Asks the user about an agent that can only work without isolation, and returns the request with
/// the accepted sandbox. A start without that decision is refused later.
pub async fn confirm_sandbox(
    request: RunRequest,
    task: &TaskFile,
    (app, questions): (&App, &dyn StartQuestions),
) -> Result<RunRequest, AppError> {
    let reason = sandbox_choice::local_agent_reason(&request, task, app).await?;
    match reason {
        Some(reason) if questions.accept_local(&reason) => Ok(RunRequest {
            sandbox: Some("local".to_owned()),
            ..request
        }),
        Some(_) | None => Ok(request),
    }
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
