//! The section that a `@@` line names behind its ranges: a function, a class or a heading above the hunk.

use super::error::HunkError;
use super::hunk::Hunk;
use super::index::FileLineIndex;

/// Keeps the places that are in the hunk's section; none of them if the hunk names no section of the file.
///
/// A section reaches from the line that it is called by to the next line of the same kind that is not
/// indented deeper. A place is in it if its first line is, or if the hunk quotes the section's own line.
pub(super) fn locations_in_section(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'_>,
    places: &[usize],
) -> Result<Vec<usize>, HunkError> {
    let Some(section) = hunk.section.filter(|_| places.len() > 1) else {
        return Ok(Vec::new());
    };
    index.charge_comparisons(index.line_count())?;
    let heads = section_heads(index, section);
    let length = hunk.old_lines().count();
    let mut found = Vec::new();
    let mut within = None;
    let mut next_head = heads.iter().copied().peekable();
    let mut next_place = places.iter().copied().peekable();
    for at in 0..index.line_count() {
        if next_place.next_if_eq(&at).is_some() {
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

/// Returns the lines that begin with the section's name; if there are none, those that contain it.
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

/// Tells whether no word goes on at this place. Git cuts long names anywhere, but not such short ones.
fn ends_word(line: &str, at: usize) -> bool {
    /// Where git cuts the name of a section, in bytes.
    const GIT_SECTION_LIMIT: usize = 80;
    let before = line[..at].chars().next_back();
    let after = line[at..].chars().next();
    at >= GIT_SECTION_LIMIT
        || !(before.is_some_and(is_word_char) && after.is_some_and(is_word_char))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Tells whether a line begins another section than the one that begins with `head`.
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

/// Tells whether a definition may begin with this character.
fn is_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$' | '@')
}
