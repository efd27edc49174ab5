//! The notes below a step: a quotation at the end of its section.
//!
//! A quotation contains everything that is open in it, so neither a heading, a code fence nor a comment of a
//! note changes the rest of the text.

use std::ops::Range;

use crate::publish::neutral::neutralize_line;

/// The first line of the notes of a step.
const TITLE: &str = "> **Notes**";

/// The longest line of a note, in bytes.
const MAX_LINE: usize = 2_000;

/// The longest reason for a blocked step, in characters.
const MAX_REASON_CHARS: usize = 400;

/// Notes that were moved to a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedNotes {
    /// The number of the step.
    pub step: String,
    pub lines: Vec<String>,
}

/// The position of the notes of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotesBlock {
    pub(super) range: Range<usize>,
}

impl NotesBlock {
    /// Finds the notes in the section of a step.
    pub(super) fn find(lines: &[String], section: Range<usize>) -> Option<Self> {
        let start = section.clone().rfind(|at| lines[*at].trim_end() == TITLE)?;
        let mut end = start;
        while end < section.end && lines[end].starts_with('>') {
            end += 1;
        }
        Some(Self { range: start..end })
    }

    /// Returns the lines without the marks of the quotation.
    pub(super) fn notes(&self, lines: &[String]) -> Vec<String> {
        let own = &lines[self.range.start + 1..self.range.end];
        own.iter().map(|line| unquoted(line).to_owned()).collect()
    }
}

/// Returns the lines of a quotation with these notes.
pub(super) fn rendered(notes: &[String]) -> impl Iterator<Item = String> {
    let quoted = notes.iter().map(|line| {
        if line.is_empty() {
            ">".to_owned()
        } else {
            format!("> {line}")
        }
    });
    std::iter::once(TITLE.to_owned()).chain(quoted)
}

/// Returns a line without the mark of a quotation.
fn unquoted(line: &str) -> &str {
    let line = line.trim_end();
    match line.strip_prefix('>') {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None => line,
    }
}

/// Converts a line that the agent added to a note: without effects on the host, and of limited length.
pub(super) fn cleaned(line: &str) -> Option<String> {
    if line.trim_end() == TITLE {
        return None;
    }
    let line: String = unquoted(line)
        .chars()
        .filter(|c| !c.is_control() || *c == '\t')
        .collect();
    // A cut after this could open a code span again.
    let line = &line[..line.floor_char_boundary(MAX_LINE)];
    let text = line.trim_start();
    let indentation = &line[..line.len() - text.len()];
    Some(format!("{indentation}{}", neutralize_line(text, None)))
}

/// Converts the reason of the agent for a blocked step to text that is safe in a heading.
pub(super) fn cleaned_reason(reason: &str) -> String {
    let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
    // A bracket would end the mark.
    neutralize_line(&reason, None).replace(['[', ']'], "|")
}

/// Separates `@` from a following name, so that the host does not notify a user.
pub fn without_mentions(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        text.push(c);
        let is_name = chars.peek().is_some_and(char::is_ascii_alphanumeric);
        if c == '@' && !before.is_ascii_alphanumeric() && is_name {
            text.push('\u{200b}');
        }
        before = c;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::cleaned;

    #[test]
    fn a_note_mentions_no_user_and_is_one_line() {
        for (line, expected) in [
            ("> used serde", Some("used serde")),
            (
                "ask @octocat, not a@b.c or @",
                Some("ask @\u{200b}octocat, not a@b.c or @"),
            ),
            ("> **Notes**", None),
            ("a\u{1b}[31m", Some("a[31m")),
            (
                "  closes #12, ![x](https://a.b/c)",
                Some("  closes #\u{200b}12, !\\[x]\\(https://a.b/c)"),
            ),
            ("`#12 @octocat`", Some("`#12 @octocat`")),
        ] {
            assert_eq!(cleaned(line).as_deref(), expected, "{line}");
        }
        assert_eq!(cleaned(&"ü".repeat(2_000)).unwrap().len(), 2_000);
    }
}
