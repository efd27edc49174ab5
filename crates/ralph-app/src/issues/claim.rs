//! Claims an issue, so that no two processes work on it.

use ralph_core::ports::HostIssue;
use ralph_core::spec::IssueStatus;

use super::error::tracker_error;
use super::repository::IssueRepository;
use crate::error::AppError;

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The issue belongs to this process.
    Won,
    /// Another process was faster.
    Lost,
}

/// Claims an issue. Removing the ready label decides, because the host removes it only once. The label for
/// issues in progress is added before, so that a crash in between leaves an issue that can still be claimed.
pub(super) async fn claim_issue(
    repository: &IssueRepository,
    issue: &HostIssue,
) -> Result<Claim, AppError> {
    let number = issue.number;
    let failed = |error| tracker_error(&format!("cannot claim issue #{number}"), &error);
    let (tracker, labels) = (&repository.tracker, repository.labels());
    if labels.find_status(&issue.labels) != Some(IssueStatus::Ready) {
        // A person starts an issue that is not ready: only one of two can take the label away.
        tracker
            .add_labels(number, &[&labels.ready])
            .await
            .map_err(failed)?;
    }
    tracker
        .add_labels(number, &[&labels.in_progress])
        .await
        .map_err(failed)?;
    if !tracker
        .remove_label(number, &labels.ready)
        .await
        .map_err(failed)?
    {
        undo_mark(repository, number).await?;
        return Ok(Claim::Lost);
    }
    let others = [
        IssueStatus::Blocked,
        IssueStatus::NeedsAttention,
        IssueStatus::Done,
    ];
    for status in others
        .into_iter()
        .filter(|status| labels.has_status(&issue.labels, *status))
    {
        tracker
            .remove_label(number, labels.status(status))
            .await
            .map_err(failed)?;
    }
    Ok(Claim::Won)
}

/// Removes the label that a lost claim added, if the other process has already ended its work.
async fn undo_mark(repository: &IssueRepository, number: u64) -> Result<(), AppError> {
    let Some(issue) = repository.issue(number).await? else {
        return Ok(());
    };
    let labels = repository.labels();
    let has_ended = match labels.find_status(&issue.labels) {
        Some(IssueStatus::Done | IssueStatus::NeedsAttention | IssueStatus::Blocked) => true,
        Some(IssueStatus::Ready | IssueStatus::InProgress) | None => false,
    };
    if has_ended {
        let removed = repository
            .tracker
            .remove_label(number, &labels.in_progress)
            .await;
        removed.map_err(|error| {
            tracker_error(&format!("cannot set the labels of issue #{number}"), &error)
        })?;
    }
    Ok(())
}
