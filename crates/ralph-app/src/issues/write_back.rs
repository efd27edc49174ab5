//! Writes the marks and notes of a run to its issue, without losing a human's edit.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::event::{Event, IterationEvent};
use ralph_core::spec::{
    FittedIssue, MAX_ISSUE_CHARS, MovedNotes, SpecWrite, fit_issue, normalise_body,
};
use ralph_engine::durable;
use ralph_engine::store::RunDir;
use ralph_engine::workspace::SPEC_FILE;
use tokio::sync::watch;

use super::comments::{comment, notes_comments};
use super::error::tracker_error;
use super::records::IssueRecord;
use super::repository::IssueRepository;
use crate::error::AppError;
use crate::follow::JournalFollower;
use crate::runs::RunObserver;

/// How often the issue is read again because a human edited it in the meantime. The next iteration tries again.
const MAX_ATTEMPTS: usize = 5;

/// The most comments with notes of one run.
const MAX_NOTES_COMMENTS: usize = 50;

/// The state of an issue after a write.
pub(super) struct WrittenIssue {
    /// The steps that a human added since the run started.
    pub(super) new_steps: Vec<String>,
    /// The steps whose marks a human removed.
    pub(super) reopened: Vec<String>,
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
    let Some(mut issue) = repository.issue(number).await? else {
        return Ok(None);
    };
    let mut is_edited = false;
    let mut attempts = 0;
    let mut found = loop {
        attempts += 1;
        let mut write = record.spec.reconcile(&ours, &issue.body);
        repository.records.store(record)?;
        is_edited |= write.is_edited;
        let Some(body) = write.body.take() else {
            break write;
        };
        let Some(body) = fitted(repository, record, &body).await? else {
            break write;
        };
        let known = normalise_body(&issue.body);
        if body == known || attempts > MAX_ATTEMPTS {
            break write;
        }
        // The host has no conditional write, so a human's edit is found by a read just before it.
        let Some(current) = repository.issue(number).await? else {
            return Ok(None);
        };
        if normalise_body(&current.body) == known {
            write_body(repository, record, &body).await?;
            break write;
        }
        issue = current;
    };
    found.is_edited = is_edited;
    if is_edited {
        report_edit(repository, record, &found).await?;
    }
    Ok(Some(WrittenIssue {
        new_steps: found.new_steps,
        reopened: found.reopened,
    }))
}

/// Returns the body within the size limit, after its oldest notes were posted as comments. Returns `None` if it
/// does not fit.
async fn fitted(
    repository: &IssueRepository,
    record: &IssueRecord,
    body: &str,
) -> Result<Option<String>, AppError> {
    let FittedIssue { body, moved } = fit_issue(body, MAX_ISSUE_CHARS);
    let is_posted = moved.is_empty() || {
        let title = "Older notes, which do not fit into the issue:";
        post_notes(repository, record, ("issue-notes", title), &moved).await?
    };
    if let Some(body) = body.filter(|_| is_posted) {
        return Ok(Some(body));
    }
    let key = format!("issue-size-{}", record.run);
    let text = "ralph cannot write the progress into this issue, because the marks would exceed its size limit. \
                Shorten it, or split it.";
    comment(repository, record.issue, &key, text).await?;
    Ok(None)
}

/// Posts notes as comments, which a repetition updates. Returns whether all of them are posted.
async fn post_notes(
    repository: &IssueRepository,
    record: &IssueRecord,
    (key, title): (&str, &str),
    notes: &[MovedNotes],
) -> Result<bool, AppError> {
    let comments = notes_comments(title, notes);
    if comments.len() > MAX_NOTES_COMMENTS {
        return Ok(false);
    }
    for (at, text) in comments.iter().enumerate() {
        let key = match at {
            0 => format!("{key}-{}", record.run),
            _ => format!("{key}-{}-{}", record.run, at + 1),
        };
        comment(repository, record.issue, &key, text).await?;
    }
    Ok(true)
}

async fn write_body(
    repository: &IssueRepository,
    record: &mut IssueRecord,
    body: &str,
) -> Result<(), AppError> {
    let number = record.issue;
    record.spec.record_intent(body);
    repository.records.store(record)?;
    let written = repository.tracker.set_body(number, body.trim_end()).await;
    written.map_err(|error| tracker_error(&format!("cannot write to issue #{number}"), &error))?;
    record.spec.record_written(body);
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
    // Writing to a string cannot fail.
    if !found.new_steps.is_empty() {
        let _ = write!(
            text,
            " Not part of it: step {}.",
            found.new_steps.join(", ")
        );
    }
    if !found.reopened.is_empty() {
        let _ = write!(
            text,
            " You removed the mark of step {}: it stays open until another run.",
            found.reopened.join(", ")
        );
    }
    if !found.dropped.is_empty() {
        let title = "Notes of steps that you removed:";
        post_notes(
            repository,
            record,
            ("issue-dropped-notes", title),
            &found.dropped,
        )
        .await?;
    }
    let key = format!("issue-edit-{}", record.run);
    comment(repository, record.issue, &key, &text).await
}

/// Writes to the issue after each iteration of a run.
pub(super) struct IssueObserver {
    pub(super) repository: Arc<IssueRepository>,
    pub(super) record: IssueRecord,
}

impl IssueObserver {
    /// Writes the progress. After a failure the next iteration, or the end of the run, writes again.
    async fn write(&mut self, dir: &RunDir) {
        if let Err(error) = write_back(&self.repository, dir, &mut self.record).await {
            tracing::warn!(%error, "the progress is not written to the issue");
        }
    }
}

#[async_trait]
impl RunObserver for IssueObserver {
    async fn follow(mut self: Box<Self>, dir: RunDir, mut latest: watch::Receiver<u64>) {
        let mut reader = JournalFollower::new(&dir);
        let mut finished = count_finished(&mut reader);
        // A new run opens the marks of an earlier one again.
        self.write(&dir).await;
        loop {
            let is_open = latest.changed().await.is_ok();
            let new = count_finished(&mut reader);
            if new > 0 || !is_open {
                finished += new;
                tracing::debug!(finished, "writing the progress to the issue");
                self.write(&dir).await;
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
