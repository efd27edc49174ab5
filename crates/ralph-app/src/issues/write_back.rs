//! Writes the marks and notes of a run to its issue, without losing a human's edit.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::event::{Event, IterationEvent};
use ralph_core::ports::HostIssue;
use ralph_core::spec::{FittedIssue, MAX_ISSUE_CHARS, SpecWrite, fit_issue, normalise_body};
use ralph_engine::durable;
use ralph_engine::store::RunDir;
use ralph_engine::workspace::SPEC_FILE;
use tokio::sync::watch;

use super::comments::{comment, notes_text};
use super::error::tracker_error;
use super::records::IssueRecord;
use super::repository::IssueRepository;
use crate::error::AppError;
use crate::follow::JournalFollower;
use crate::runs::RunObserver;

/// The state of an issue after a write.
pub(super) struct WrittenIssue {
    /// The steps that a human added since the run started.
    pub(super) new_steps: Vec<String>,
}

/// Writes the current specification of a run to its issue. Returns `None` if the issue is gone.
pub(super) async fn write_back(
    repository: &IssueRepository,
    dir: &RunDir,
    record: &mut IssueRecord,
) -> Result<Option<WrittenIssue>, AppError> {
    let number = record.issue;
    let Some(ours) = durable::read_if_present(&dir.file(SPEC_FILE))? else {
        return Err(AppError::runtime(
            format!("cannot write to issue #{number}"),
            format!("run `{}` has no specification", record.run),
            "start it again with the ready label",
        ));
    };
    let ours = String::from_utf8_lossy(&ours).into_owned();
    let Some(issue) = repository.issue(number).await? else {
        return Ok(None);
    };
    let mut write = record.spec.reconcile(&ours, &issue.body);
    repository.records.store(record)?;
    if write.is_edited {
        report_edit(repository, record, &write).await?;
    }
    if let Some(body) = write.body.take() {
        write_body(repository, record, &issue, &body).await?;
    }
    Ok(Some(WrittenIssue {
        new_steps: write.new_steps,
    }))
}

async fn write_body(
    repository: &IssueRepository,
    record: &mut IssueRecord,
    issue: &HostIssue,
    body: &str,
) -> Result<(), AppError> {
    let number = issue.number;
    let FittedIssue { body, moved } = fit_issue(body, MAX_ISSUE_CHARS);
    if !moved.is_empty() {
        // One comment per run, which always has all of them.
        let key = format!("issue-notes-{}", record.run);
        let text = notes_text("Older notes, which do not fit into the issue:", &moved);
        comment(repository, number, &key, &text).await?;
    }
    let Some(body) = body else {
        let key = format!("issue-size-{}", record.run);
        let text = "ralph cannot write the progress into this issue, because the marks would exceed its size limit. \
                    Shorten it, or split it.";
        return comment(repository, number, &key, text).await;
    };
    if body == normalise_body(&issue.body) {
        return Ok(());
    }
    record.spec.record_intent(&body);
    repository.records.store(record)?;
    let written = repository.tracker.set_body(number, body.trim_end()).await;
    written.map_err(|error| tracker_error(&format!("cannot write to issue #{number}"), &error))?;
    record.spec.record_written(&body);
    repository.records.store(record)
}

async fn report_edit(
    repository: &IssueRepository,
    record: &IssueRecord,
    found: &SpecWrite,
) -> Result<(), AppError> {
    let mut text = "This issue was edited while ralph works on it. Your text stays; ralph only adds its marks and \
                    notes. The current run continues with the steps that it started with."
        .to_owned();
    if !found.new_steps.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " Not part of it: step {}.",
            found.new_steps.join(", ")
        );
    }
    if !found.dropped.is_empty() {
        text.push_str("\n\n");
        text.push_str(&notes_text(
            "Notes of steps that you removed:",
            &found.dropped,
        ));
    }
    let key = format!("issue-edit-{}", record.run);
    comment(repository, record.issue, &key, &text).await
}

/// Writes to the issue after each iteration of a run.
pub(super) struct IssueObserver {
    pub(super) repository: Arc<IssueRepository>,
    pub(super) record: IssueRecord,
}

#[async_trait]
impl RunObserver for IssueObserver {
    async fn follow(mut self: Box<Self>, dir: RunDir, mut latest: watch::Receiver<u64>) {
        let mut reader = JournalFollower::new(&dir);
        let mut finished = count_finished(&mut reader);
        loop {
            let is_open = latest.changed().await.is_ok();
            let new = count_finished(&mut reader);
            if new > 0 || !is_open {
                finished += new;
                tracing::debug!(finished, "writing the progress to the issue");
                // The next iteration, or the end of the run, writes again.
                if let Err(error) = write_back(&self.repository, &dir, &mut self.record).await {
                    tracing::warn!(%error, "the progress is not written to the issue");
                }
            }
            if !is_open {
                return;
            }
        }
    }
}

/// Returns the number of iterations that ended since the last call.
fn count_finished(reader: &mut JournalFollower) -> u64 {
    let mut finished = 0;
    let read = reader.read_new(&mut |record, _| {
        if matches!(
            &record.event,
            Event::Iteration(IterationEvent::IterationFinished { .. })
        ) {
            finished += 1;
        }
    });
    // The run itself reports an unreadable journal.
    if let Err(error) = read {
        tracing::warn!(%error, "cannot follow the run of an issue");
    }
    finished
}
