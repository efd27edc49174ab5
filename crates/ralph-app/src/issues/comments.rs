//! The comments on an issue: one with its status, and one for each special event of a run.

use std::fmt::Write as _;

use ralph_core::lint::LintFinding;
use ralph_core::ports::KeyedComment;
use ralph_core::spec::{MAX_ISSUE_CHARS, MovedNotes, without_mentions};

use super::error::tracker_error;
use super::repository::IssueRepository;
use crate::error::AppError;

/// The key of the comment with the status.
const STATUS_KEY: &str = "issue-status";

/// Creates or updates the comment with the status of an issue.
pub(super) async fn comment_status(
    repository: &IssueRepository,
    number: u64,
    text: &str,
) -> Result<(), AppError> {
    comment(repository, number, STATUS_KEY, text).await
}

/// Creates or updates a comment. Its text is redacted, mentions no user, and has a limited length.
pub(super) async fn comment(
    repository: &IssueRepository,
    number: u64,
    key: &str,
    text: &str,
) -> Result<(), AppError> {
    let text = repository.app.redactor().redact(text).into_owned();
    let lines: Vec<String> = text.lines().map(without_mentions).collect();
    let body: String = lines
        .join("\n")
        .chars()
        .take(MAX_ISSUE_CHARS - 1_000)
        .collect();
    let comment = KeyedComment {
        key: key.to_owned(),
        body,
    };
    let sent = repository.tracker.comment(number, &comment).await;
    sent.map_err(|error| tracker_error(&format!("cannot comment on issue #{number}"), &error))
}

/// Returns the comment about the problems of a specification.
pub(super) fn findings_text(findings: &[LintFinding]) -> String {
    let mut text = "**ralph cannot start**: the specification has problems.\n\n".to_owned();
    for finding in findings {
        let line = finding
            .line
            .map_or_else(String::new, |line| format!("line {line}: "));
        let _ = writeln!(text, "- {line}{} — {}", finding.message, finding.fix);
    }
    text.push_str("\nEdit the issue, then give it the ready label again.");
    text
}

/// Returns the comment about an error.
pub(super) fn error_text(what: &str, error: &AppError) -> String {
    format!("**{what}**\n\n{}", quoted(&error.to_string()))
}

/// Returns a text as a quotation, in which nothing can stay open.
pub(super) fn quoted(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .take(100)
        .map(|line| format!("> {line}"))
        .collect();
    lines.join("\n")
}

/// Returns a comment with notes.
pub(super) fn notes_text(title: &str, notes: &[MovedNotes]) -> String {
    let mut text = format!("{title}\n");
    for moved in notes {
        let _ = write!(
            text,
            "\n**Step {}**\n\n{}\n",
            moved.step,
            quoted(&moved.lines.join("\n"))
        );
    }
    text
}

/// Returns numbers of issues as links.
pub(super) fn issue_list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
    numbers.join(", ")
}
