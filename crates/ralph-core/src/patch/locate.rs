//! Locates a hunk in the file, by the rules in the documentation of the parent module.

use std::borrow::Cow;
use std::ops::Range;

use super::error::{HunkError, quote};
use super::hunk::{Hunk, HunkLine, HunkLineKind};
use super::indent_shift::{LinePair, shift_added_lines};
use super::index::FileLineIndex;
use super::nearby::locate_nearby;
use super::section::locations_in_section;

/// How many times closer to the stated line a position must be than the next one.
const MIN_DISTANCE_RATIO: usize = 4;

/// One edit at a line of the original file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkEdit<'a> {
    /// Removes the line.
    Remove(usize),
    /// Inserts a line before it.
    Insert {
        at: usize,
        text: Cow<'a, str>,
        ends_file: bool,
    },
}

/// The location of a hunk.
#[derive(Debug)]
pub(super) struct HunkLocation<'a> {
    /// The line that the `@@` line should state, from 0.
    pub(super) start: usize,
    /// The matching lines of the file.
    pub(super) matched: Range<usize>,
    pub(super) edits: Vec<HunkEdit<'a>>,
    /// How the lines differ from those of the file, if they do.
    pub(super) difference: Option<&'static str>,
}

/// The line at which a hunk should start, from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedStart {
    /// As stated in its `@@` line.
    pub(super) stated: usize,
    /// Shifted by the offset of the previous hunk.
    pub(super) offset: usize,
}

/// Locates one hunk.
pub(super) fn locate<'a>(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'a>,
    expected: Option<ExpectedStart>,
) -> Result<HunkLocation<'a>, HunkError> {
    let location =
        find_location(index, hunk, expected).map_err(|it| it.with_section(hunk.section))?;
    if repeats_earlier_insertion(index, &location) {
        return Err(HunkError::AlreadyPresent);
    }
    Ok(location)
}

fn find_location<'a>(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'a>,
    expected: Option<ExpectedStart>,
) -> Result<HunkLocation<'a>, HunkError> {
    let old: Vec<&str> = hunk.old_lines().map(|line| line.text).collect();
    let is_blank = old.iter().all(|text| text.trim().is_empty());
    let found = at_end_if_marked(index, hunk, index.find(&old)?)?;
    let (plain, indented): (Vec<usize>, Vec<usize>) = found
        .into_iter()
        .partition(|start| index.matches_ignoring_trailing(*start, &old));
    let in_section = locations_in_section(index, hunk, &plain)?;
    if let Some(start) = choose_location(&plain, &in_section, expected, old.len())? {
        let expected = expected.map(|expected| expected.offset);
        if expected != Some(start) && is_applied_at_stated_line(index, hunk) {
            return Err(HunkError::AlreadyPresent);
        }
        if is_blank && expected != Some(start) {
            return Err(no_context_error(hunk));
        }
        if let Some(other) = expected
            && other != start
            && (indented.contains(&other) || lacks_line_at(index, hunk, start, other)?)
        {
            return Err(HunkError::ambiguous([start, other]));
        }
        let exact = (start..)
            .zip(&old)
            .all(|(at, text)| index.text(at) == *text);
        let rows: Vec<usize> = (start..start + old.len()).collect();
        return Ok(HunkLocation {
            start,
            matched: start..start + old.len(),
            edits: edits(&hunk.lines, &rows),
            difference: (!exact).then_some("with different trailing whitespace"),
        });
    }
    if is_blank {
        return Err(no_context_error(hunk));
    }
    if is_already_applied(index, hunk)? {
        return Err(HunkError::AlreadyPresent);
    }
    match (
        &indented[..],
        &locations_in_section(index, hunk, &indented)?[..],
    ) {
        ([], _) => {}
        ([start], _) | (_, [start]) => return locate_indented(index, hunk, *start),
        _ => return Err(HunkError::ambiguous(indented.iter().copied())),
    }
    if let Some(location) = locate_nearby(index, hunk, expected)? {
        return Ok(location);
    }
    let line = quote(index.first_unmatched(&old)?);
    Err(HunkError::NotFound { line })
}

/// Selects a position at which all old lines match. `in_section` are those in the hunk's section.
fn choose_location(
    all: &[usize],
    in_section: &[usize],
    expected: Option<ExpectedStart>,
    length: usize,
) -> Result<Option<usize>, HunkError> {
    let ambiguous = || HunkError::ambiguous(all.iter().copied());
    if let [] | [_] = all {
        return Ok(all.first().copied());
    }
    let at_stated_line = expected
        .map(|expected| expected.offset)
        .filter(|shifted| all.contains(shifted));
    let starts = match in_section {
        [] => all,
        // The line number and the section must not select different positions.
        _ if at_stated_line.is_some_and(|start| !in_section.contains(&start)) => {
            return Err(ambiguous());
        }
        [start] => return Ok(Some(*start)),
        _ => in_section,
    };
    let Some(ExpectedStart {
        stated,
        offset: shifted,
    }) = expected
    else {
        return Err(ambiguous());
    };
    if starts.contains(&shifted) {
        // The stated and the shifted line must not select different positions.
        let both = stated != shifted && starts.contains(&stated);
        return if both {
            Err(ambiguous())
        } else {
            Ok(Some(shifted))
        };
    }
    let mut by_distance: Vec<(usize, usize)> = starts
        .iter()
        .map(|start| (start.abs_diff(shifted), *start))
        .collect();
    by_distance.sort_unstable();
    match by_distance[..] {
        [(near, start), (far, _), ..] if near <= length && far >= MIN_DISTANCE_RATIO * near => {
            Ok(Some(start))
        }
        _ => Err(ambiguous()),
    }
}

/// Returns whether the hunk also matches at the stated line if the old line is restored that is
/// missing according to its counts.
fn lacks_line_at(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'_>,
    start: usize,
    stated: usize,
) -> Result<bool, HunkError> {
    if !hunk.lacks_context_lines(1) && !hunk.lacks_removed_line() {
        return Ok(false);
    }
    let starts_with_addition = hunk
        .lines
        .first()
        .is_some_and(|line| line.kind == HunkLineKind::Added);
    let old: Vec<&str> = hunk.old_lines().map(|line| line.text).collect();
    let mut gaps = index.find_with_gap(&old)?.into_iter();
    Ok(
        (starts_with_addition && start.checked_sub(1) == Some(stated))
            || gaps.any(|(at, _)| at == stated),
    )
}

/// Restricts the positions to the end of the file if an old line is marked as the last one.
fn at_end_if_marked(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'_>,
    mut starts: Vec<usize>,
) -> Result<Vec<usize>, HunkError> {
    let old = hunk.old_lines().count();
    if let Some(last) = hunk.old_lines().last().filter(|line| line.ends_file)
        && !starts.is_empty()
    {
        starts.retain(|start| start + old == index.line_count());
        if starts.is_empty() {
            let line = quote(last.text);
            return Err(HunkError::NotAtEnd { line });
        }
    }
    Ok(starts)
}

fn no_context_error(hunk: &Hunk<'_>) -> HunkError {
    let mut changed = hunk
        .lines
        .iter()
        .filter(|line| line.kind != HunkLineKind::Context);
    HunkError::NoContext {
        line: quote(changed.next().map_or("", |line| line.text)),
    }
}

/// Returns whether a line is evidence; braces and blank lines are too common.
fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Returns whether a hunk that only adds lines at its edges was already applied here.
fn repeats_earlier_insertion(index: &FileLineIndex<'_>, location: &HunkLocation<'_>) -> bool {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for edit in &location.edits {
        match edit {
            HunkEdit::Insert { at, text, .. } if *at == location.matched.start => {
                before.push(text.as_ref());
            }
            HunkEdit::Insert { at, text, .. } if *at == location.matched.end => {
                after.push(text.as_ref());
            }
            HunkEdit::Insert { .. } | HunkEdit::Remove(_) => return false,
        }
    }
    let is_before = location.matched.start.checked_sub(before.len());
    is_before.is_some_and(|start| index.matches_ignoring_trailing(start, &before))
        && index.matches_ignoring_trailing(location.matched.end, &after)
        && before.iter().chain(&after).any(|text| has_word(text))
}

/// Returns whether the file has the hunk's new lines, given that its old ones were not found.
fn is_already_applied(index: &FileLineIndex<'_>, hunk: &Hunk<'_>) -> Result<bool, HunkError> {
    let mut removed = evidence_lines(hunk, HunkLineKind::Removed).peekable();
    // Context alone is weak evidence: removed lines must be missing from the whole file.
    let has_evidence = evidence_lines(hunk, HunkLineKind::Added).next().is_some()
        || (removed.peek().is_some() && !removed.any(|text| index.contains(text)));
    let new: Vec<&str> = hunk.new_lines().map(|line| line.text).collect();
    Ok(has_evidence && !index.find_ignoring_trailing(&new)?.is_empty())
}

/// Returns whether the file has the hunk's new lines exactly at the stated line. Then old lines
/// elsewhere are unrelated.
fn is_applied_at_stated_line(index: &FileLineIndex<'_>, hunk: &Hunk<'_>) -> bool {
    let new: Vec<&str> = hunk.new_lines().map(|line| line.text).collect();
    let start = hunk
        .ranges
        .and_then(|stated| stated.new_start.checked_sub(1));
    evidence_lines(hunk, HunkLineKind::Added).next().is_some()
        && start.is_some_and(|start| index.matches_ignoring_trailing(start, &new))
}

/// Returns the lines of one side that are evidence.
fn evidence_lines<'a>(hunk: &Hunk<'a>, side: HunkLineKind) -> impl Iterator<Item = &'a str> {
    let lines = hunk.lines.iter().filter(move |line| line.kind == side);
    lines.map(|line| line.text).filter(|text| has_word(text))
}

fn locate_indented<'a>(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'a>,
    start: usize,
) -> Result<HunkLocation<'a>, HunkError> {
    let pairs: Vec<LinePair<'_>> = hunk
        .old_lines()
        .zip(start..)
        .map(|(line, at)| LinePair {
            patch: line.text,
            file: index.text(at),
            removed: line.kind == HunkLineKind::Removed,
        })
        .collect();
    let added = hunk
        .lines
        .iter()
        .filter(|line| line.kind == HunkLineKind::Added);
    let added: Vec<&str> = added.map(|line| line.text).collect();
    let Some(shifted) = shift_added_lines(&pairs, &added) else {
        return Err(HunkError::Indentation {
            line_number: start + 1,
        });
    };
    let rows: Vec<usize> = (start..start + pairs.len()).collect();
    let mut edits = edits(&hunk.lines, &rows);
    let mut shifted = shifted.into_iter();
    for edit in &mut edits {
        if let HunkEdit::Insert { text, .. } = edit
            && let Some(line) = shifted.next()
        {
            *text = Cow::Owned(line);
        }
    }
    Ok(HunkLocation {
        start,
        matched: start..start + pairs.len(),
        edits,
        difference: Some("with a different indentation, which was applied to the added lines, too"),
    })
}

/// Returns the edits of a hunk, given the positions of its old lines in the file. Added lines
/// follow the old line before them.
pub(super) fn edits<'a>(lines: &[HunkLine<'a>], rows: &[usize]) -> Vec<HunkEdit<'a>> {
    let mut next = rows.first().copied().unwrap_or(0);
    let mut rows = rows.iter();
    let mut edits = Vec::new();
    for line in lines {
        if line.kind == HunkLineKind::Added {
            edits.push(HunkEdit::Insert {
                at: next,
                text: Cow::Borrowed(line.text),
                ends_file: line.ends_file,
            });
            continue;
        }
        let Some(row) = rows.next() else { break };
        if line.kind == HunkLineKind::Removed {
            edits.push(HunkEdit::Remove(*row));
        }
        next = row + 1;
    }
    edits
}
