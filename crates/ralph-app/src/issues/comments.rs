//! The comments on an issue: one with its status, and one for each special event of a run.

use std::fmt::Write as _;

use ralph_core::lint::LintFinding;
use ralph_core::ports::KeyedComment;
use ralph_core::publish::neutral::neutralize_line;
use ralph_core::spec::{MAX_ISSUE_CHARS, MovedNotes, without_mentions};

use super::error::tracker_error;
use super::front_end::UnmetDependencies;
use super::repository::IssueRepository;
use crate::error::AppError;

/// The key of the comment with the status.
const STATUS_KEY: &str = "issue-status";

/// The most characters of notes in one comment. The rest of its limit is for what redaction adds.
const MAX_NOTES_CHARS: usize = 40_000;

/// The most characters of one line of notes in a comment.
const MAX_LINE_CHARS: usize = 10_000;

/// Returns the text of the comment with the status of an issue.
pub(super) async fn read_status_comment(
    repository: &IssueRepository,
    number: u64,
) -> Result<Option<String>, AppError> {
    let found = repository.tracker.find_comment(number, STATUS_KEY).await;
    found.map_err(|error| {
        tracker_error(
            &format!("cannot read the comments on issue #{number}"),
            &error,
        )
    })
}

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

/// Returns the comment about an issue that waits for others, which `done` labels when they are done.
pub(super) fn blocked_text(unmet: &UnmetDependencies, done: &str) -> String {
    let verb = if unmet.on.len() == 1 { "has" } else { "have" };
    let on = issue_list(&unmet.on);
    let mut text = format!(
        "**Blocked**: waits until {on} {verb} the label `{done}`. ralph makes this issue ready then."
    );
    if !unmet.unknown.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n\nThis repository has no issue {}: correct `depends`, and ralph looks again.",
            issue_list(&unmet.unknown)
        );
    }
    text
}

/// Returns the comment about an error.
pub(super) fn error_text(what: &str, error: &AppError, issue: u64) -> String {
    format!("**{what}**\n\n{}", quoted(&error.to_string(), issue))
}

/// Returns a text as a quotation, in which nothing can stay open, and without effects on the host.
pub(super) fn quoted(text: &str, issue: u64) -> String {
    let lines: Vec<String> = text
        .lines()
        .take(100)
        .map(|line| format!("> {}", neutralize_line(line, Some(issue))))
        .collect();
    lines.join("\n")
}

/// Returns comments with all the notes, as few as possible. The notes were neutralised when the run accepted them.
pub(super) fn notes_comments(title: &str, notes: &[MovedNotes]) -> Vec<String> {
    let mut comments = Vec::new();
    let mut text = format!("{title}\n");
    for moved in notes {
        let heading = format!("\n**Step {}**\n\n", moved.step);
        let mut is_started = false;
        for part in moved.lines.iter().flat_map(|line| parts(line)) {
            if text.chars().count() + part.chars().count() > MAX_NOTES_CHARS {
                comments.push(std::mem::replace(&mut text, format!("{title}\n")));
                is_started = false;
            }
            if !is_started {
                text.push_str(&heading);
                is_started = true;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "> {part}");
        }
    }
    comments.push(text);
    comments
}

/// Returns a line in parts of limited length.
fn parts(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((at, _)) = rest.char_indices().nth(MAX_LINE_CHARS) {
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// Returns numbers of issues as links.
pub(super) fn issue_list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_split_and_not_cut() {
        let line = |at: usize| format!("{at:06} {}", "x".repeat(20_000));
        let moved: Vec<MovedNotes> = (0..4)
            .map(|step| MovedNotes {
                step: step.to_string(),
                lines: (0..3).map(|at| line(step * 10 + at)).collect(),
            })
            .collect();
        let comments = notes_comments("Notes:", &moved);
        assert!(comments.len() > 4, "{}", comments.len());
        for comment in &comments {
            assert!(comment.starts_with("Notes:\n\n**Step "), "{comment:.40}");
            assert!(comment.chars().count() < MAX_ISSUE_CHARS - 1_000);
        }
        let lines = comments.iter().flat_map(|comment| comment.lines());
        let kept: String = lines.filter_map(|line| line.strip_prefix("> ")).collect();
        let all: String = moved.iter().flat_map(|notes| notes.lines.clone()).collect();
        assert!(kept == all);
    }

    #[test]
    fn a_quoted_reason_has_no_effect() {
        assert_eq!(
            quoted("see #12 and #7, @octocat\n<b>", 7),
            "> see #\u{200b}12 and #7, @\u{200b}octocat\n> &lt;b>"
        );
    }
}
