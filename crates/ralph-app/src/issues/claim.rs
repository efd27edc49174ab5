//! Claims an issue, so that no two processes work on it.

use ralph_core::id::RunId;
use ralph_core::ports::HostIssue;
use ralph_core::spec::IssueStatus;

use super::claim_record::ClaimRecord;
use super::comments::{comment_status, read_status_comment};
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

/// Claims an issue. Removing the label of its status decides, because the host removes it only once. The label
/// for issues in progress is added before, so that a crash in between leaves an issue that can still be claimed.
/// The claim is stored first: after a crash, or a removal without a response, this machine continues with it unless
/// the comment with the status names the claim of another machine.
pub(super) async fn claim_issue(
    repository: &IssueRepository,
    issue: &HostIssue,
    run: Option<RunId>,
) -> Result<Claim, AppError> {
    let number = issue.number;
    let failed = |error| tracker_error(&format!("cannot claim issue #{number}"), &error);
    let (tracker, labels) = (&repository.tracker, repository.labels());
    let comment = read_status_comment(repository, number).await?;
    let claim = ClaimRecord::new(comment.as_deref(), run);
    repository.records.store_claim(number, &claim)?;
    let from = match labels.find_status(&issue.labels) {
        Some(from @ (IssueStatus::Ready | IssueStatus::Blocked | IssueStatus::NeedsAttention)) => {
            from
        }
        Some(IssueStatus::InProgress | IssueStatus::Done) | None => {
            // Without a status there is no label to remove. Only persons start such an issue.
            let added = tracker.add_labels(number, &[&labels.ready]).await;
            added.map_err(failed)?;
            IssueStatus::Ready
        }
    };
    let added = tracker.add_labels(number, &[&labels.in_progress]).await;
    added.map_err(failed)?;
    let removed = tracker.remove_label(number, labels.status(from)).await;
    if !removed.map_err(failed)? {
        undo_mark(repository, number).await?;
        repository.records.remove_claim(number)?;
        return Ok(Claim::Lost);
    }
    let others = [
        IssueStatus::Blocked,
        IssueStatus::NeedsAttention,
        IssueStatus::Done,
    ];
    for status in others
        .into_iter()
        .filter(|status| *status != from && labels.has_status(&issue.labels, *status))
    {
        let removed = tracker.remove_label(number, labels.status(status)).await;
        removed.map_err(failed)?;
    }
    let text = format!(
        "**In progress**: ralph prepares a run. {}",
        claim.sentence()
    );
    comment_status(repository, number, &text).await?;
    Ok(Claim::Won)
}

/// Returns the claim of this machine on an issue in progress. A claim that another machine's replaced is removed.
pub(super) async fn current_claim(
    repository: &IssueRepository,
    number: u64,
) -> Result<Option<ClaimRecord>, AppError> {
    let Some(claim) = repository.records.load_claim(number)? else {
        return Ok(None);
    };
    let comment = read_status_comment(repository, number).await?;
    if claim.is_current(comment.as_deref()) {
        return Ok(Some(claim));
    }
    repository.records.remove_claim(number)?;
    Ok(None)
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
