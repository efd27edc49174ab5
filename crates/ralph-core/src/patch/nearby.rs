//! Positions at which all lines of a hunk but one match: a misquoted context line at an edge, or a
//! context line that the patch omits.

use super::error::{HunkError, quote};
use super::hunk::{Hunk, HunkLine, HunkLineKind};
use super::index::FileLineIndex;
use super::locate::{ExpectedStart, HunkLocation, edits};

/// Minimum number of nonblank lines that must match after one line was dropped.
const MIN_EVIDENCE: usize = 2;

/// Returns the only position that almost matches, if there is one.
pub(super) fn locate_nearby<'a>(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'a>,
    expected: Option<ExpectedStart>,
) -> Result<Option<HunkLocation<'a>>, HunkError> {
    let mut locations = Vec::from_iter(with_extra_file_line(index, hunk)?);
    if let [first, rest @ ..] = &hunk.lines[..]
        && first.kind == HunkLineKind::Context
    {
        locations.extend(without_edge(index, first, rest, HunkEdge::First, expected)?);
    }
    if let [rest @ .., last] = &hunk.lines[..]
        && last.kind == HunkLineKind::Context
        && !last.ends_file
    {
        locations.extend(without_edge(index, last, rest, HunkEdge::Last, expected)?);
    }
    if let Some(first) = locations.first()
        && locations
            .iter()
            .any(|location| location.edits != first.edits)
    {
        let starts = locations.iter().map(|location| location.start);
        return Err(HunkError::ambiguous(starts));
    }
    Ok(locations.into_iter().next())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HunkEdge {
    First,
    Last,
}

/// Returns the only position of a hunk without its first or last line.
fn without_edge<'a>(
    index: &FileLineIndex<'_>,
    edge: &HunkLine<'_>,
    rest: &[HunkLine<'a>],
    which: HunkEdge,
    expected: Option<ExpectedStart>,
) -> Result<Option<HunkLocation<'a>>, HunkError> {
    let old = line_texts(rest);
    // A line that exists elsewhere in the file is not misquoted: the hunk may belong there.
    let misquoted = edge.text.trim().is_empty() || !index.contains(edge.text);
    if !misquoted || count_nonblank(&old) < MIN_EVIDENCE {
        return Ok(None);
    }
    let ends_file = rest
        .iter()
        .any(|line| line.kind != HunkLineKind::Added && line.ends_file);
    let neighbour = match which {
        HunkEdge::First => rest.first(),
        HunkEdge::Last => rest.last(),
    };
    let hunk_start = |start: usize| match which {
        HunkEdge::First => start.checked_sub(1),
        HunkEdge::Last => Some(start),
    };
    let is_plausible = |start: &usize| {
        let is_stated = expected.map(|expected| hunk_start(*start) == Some(expected.offset));
        let in_file = match which {
            HunkEdge::First => start.checked_sub(1),
            HunkEdge::Last => Some(start + old.len()).filter(|at| *at < index.line_count()),
        };
        // An empty line is not evidence, so nothing may depend on it.
        if edge.text.trim().is_empty() {
            is_stated != Some(false)
                && neighbour.is_some_and(|line| line.kind != HunkLineKind::Added)
        } else {
            is_stated == Some(true)
                || in_file.is_some_and(|at| is_similar(edge.text.trim(), index.text(at).trim()))
        }
    };
    let mut starts = index.find_ignoring_trailing(&old)?;
    starts.retain(|start| !ends_file || start + old.len() == index.line_count());
    if !starts.iter().any(is_plausible) {
        return Ok(None);
    }
    // Several positions are ambiguous even if only one of them is plausible.
    let [start] = starts[..] else {
        return Err(HunkError::ambiguous(starts));
    };
    let rows: Vec<usize> = (start..start + old.len()).collect();
    Ok(Some(HunkLocation {
        start: hunk_start(start).unwrap_or(start),
        matched: start..start + old.len(),
        edits: edits(rest, &rows),
        difference: Some("with one misquoted context line"),
    }))
}

/// Returns the only position at which the file has one more line inside the hunk. Which of several
/// equal lines was omitted does not matter.
fn with_extra_file_line<'a>(
    index: &FileLineIndex<'_>,
    hunk: &Hunk<'a>,
) -> Result<Option<HunkLocation<'a>>, HunkError> {
    let old = line_texts(&hunk.lines);
    let old_at: Vec<usize> = (0..hunk.lines.len())
        .filter(|at| hunk.lines[*at].kind != HunkLineKind::Added)
        .collect();
    let ends_file = hunk.old_lines().last().is_some_and(|line| line.ends_file);
    let mut found: Option<HunkLocation<'a>> = None;
    let mut unclear = None;
    for (start, gap) in index.find_with_gap(&old)? {
        let end = start + old.len() + 1;
        if ends_file && end != index.line_count() {
            continue;
        }
        let (before, after) = (old_at[gap - 1], old_at[gap]);
        let context = [before, after]
            .into_iter()
            .filter(|at| hunk.lines[*at].kind == HunkLineKind::Context)
            .count();
        // The counts must not imply that the line is removed, and next to a removed line they must
        // imply that it is not.
        let clear = after == before + 1
            && (context == 2 || (context == 1 && hunk.lacks_context_lines(1)))
            && !hunk.lacks_removed_line()
            && count_nonblank(&old[..gap]) > 0
            && count_nonblank(&old[gap..]) > 0;
        if !clear {
            unclear = unclear.or(Some(start + gap));
            continue;
        }
        let rows: Vec<usize> = (start..end).filter(|row| *row != start + gap).collect();
        let edits = edits(&hunk.lines, &rows);
        if let Some(other) = found.as_ref().filter(|location| location.edits != edits) {
            return Err(HunkError::ambiguous([other.start, start]));
        }
        found = Some(HunkLocation {
            start,
            matched: start..end,
            edits,
            difference: Some("with one line of the file omitted"),
        });
    }
    match unclear {
        Some(at) => Err(HunkError::LeftOut {
            line: quote(index.text(at)),
        }),
        None => Ok(found),
    }
}

fn line_texts<'a>(lines: &[HunkLine<'a>]) -> Vec<&'a str> {
    let old = lines.iter().filter(|line| line.kind != HunkLineKind::Added);
    old.map(|line| line.text).collect()
}

fn count_nonblank(lines: &[&str]) -> usize {
    lines.iter().filter(|line| !line.trim().is_empty()).count()
}

/// Returns whether two lines share a prefix and suffix of at least half of the longer one.
fn is_similar(left: &str, right: &str) -> bool {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let ahead = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let (left_rest, right_rest) = (&left[ahead..], &right[ahead..]);
    let pairs = left_rest.iter().rev().zip(right_rest.iter().rev());
    let behind = pairs.take_while(|(a, b)| a == b).count();
    2 * (ahead + behind) >= left.len().max(right.len())
}
