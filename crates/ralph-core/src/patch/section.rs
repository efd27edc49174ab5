//! The section that a `@@` line names after its ranges: a function, a class or a heading above the
//! hunk.

use super::error::HunkError;
use super::hunk::Hunk;
use super::index::FileLineIndex;

/// Returns the positions in the hunk's section; empty if the hunk does not name a section of the
/// file.
///
/// A section extends from its head to the next line of the same kind that is not indented deeper. A
/// position is in it if its first line is, or if the hunk quotes the section's head.
pub(super) fn locations_in_section(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'_>,
    positions: &[usize],
) -> Result<Vec<usize>, HunkError> {
    let Some(section) = hunk.section.filter(|_| positions.len() > 1) else {
        return Ok(Vec::new());
    };
    index.charge_comparisons(index.line_count())?;
    let heads = section_heads(index, section);
    let length = hunk.old_lines().count();
    let mut found = Vec::new();
    let mut within = None;
    let mut next_head = heads.iter().copied().peekable();
    let mut next_position = positions.iter().copied().peekable();
    for at in 0..index.line_count() {
        if next_position.next_if_eq(&at).is_some() {
            let quoted = next_head.peek().is_some_and(|head| *head < at + length);
            if within.is_some() || quoted {
                found.push(at);
            }
        }
        if next_head.next_if_eq(&at).is_some() {
            within = Some(at);
        } else if within.is_some_and(|head| ends_section(index.text(head), index.text(at))) {
            within = None;
        }
    }
    Ok(found)
}

/// Returns the lines that start with the section's name, or else those that contain it.
fn section_heads(index: &FileLineIndex<'_>, section: &str) -> Vec<usize> {
    let lines = |fits: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let all = 0..index.line_count();
        all.filter(|at| fits(index.text(*at).trim_start()))
            .collect()
    };
    let begin = lines(&|line| line.starts_with(section) && ends_word(line, section.len()));
    if begin.is_empty() {
        lines(&|line| contains_words(line, section))
    } else {
        begin
    }
}

fn contains_words(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(is_word_char) && ends_word(line, at + words.len())
    })
}

/// Returns whether a word ends at this offset. Git truncates only names longer than its limit.
fn ends_word(line: &str, at: usize) -> bool {
    /// The length at which git truncates the name of a section, in bytes.
    const GIT_SECTION_LIMIT: usize = 80;
    let before = line[..at].chars().next_back();
    let after = line[at..].chars().next();
    at >= GIT_SECTION_LIMIT
        || !(before.is_some_and(is_word_char) && after.is_some_and(is_word_char))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether a line starts a section other than the one with this head.
fn ends_section(head: &str, line: &str) -> bool {
    let indent = |text: &str| text.len() - text.trim_start().len();
    if indent(line) > indent(head) {
        return false;
    }
    let (head, line) = (head.trim_start(), line.trim_start());
    let rank = |text: &str| text.len() - text.trim_start_matches('#').len();
    match (head.chars().next(), line.chars().next()) {
        (Some('#'), Some('#')) => rank(line) <= rank(head),
        (Some(head), Some(line)) => head == line || (is_name(head) && is_name(line)),
        (None, _) | (_, None) => false,
    }
}

/// Returns whether a definition may start with this character.
fn is_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$' | '@')
}
