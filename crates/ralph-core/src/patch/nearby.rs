//! Places that fit all lines of a hunk but one: a misquoted context line at an edge, or a context
//! line that the patch left out.

use super::error::{Refusal, quote};
use super::hunk::{Hunk, Line, Side};
use super::index::Index;
use super::locate::{Expected, Place, edits};

/// How many lines with text must be left to believe a place after one line was dropped.
const MIN_EVIDENCE: usize = 2;

/// Returns the only place that almost fits, if there is one.
pub(super) fn nearby<'a>(
    index: &Index<'_>,
    hunk: &Hunk<'a>,
    expected: Option<Expected>,
) -> Result<Option<Place<'a>>, Refusal> {
    let mut places = Vec::from_iter(with_line_left_out(index, hunk)?);
    if let [first, rest @ ..] = &hunk.lines[..]
        && first.side == Side::Context
    {
        places.extend(without_edge(index, first, rest, Edge::First, expected)?);
    }
    if let [rest @ .., last] = &hunk.lines[..]
        && last.side == Side::Context
        && !last.ends_file
    {
        places.extend(without_edge(index, last, rest, Edge::Last, expected)?);
    }
    if let Some(first) = places.first()
        && places.iter().any(|place| place.edits != first.edits)
    {
        let starts = places.iter().map(|place| place.start);
        return Err(Refusal::ambiguous(starts));
    }
    Ok(places.into_iter().next())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    First,
    Last,
}

/// Returns the only place of a hunk without its first or last line.
fn without_edge<'a>(
    index: &Index<'_>,
    edge: &Line<'_>,
    rest: &[Line<'a>],
    which: Edge,
    expected: Option<Expected>,
) -> Result<Option<Place<'a>>, Refusal> {
    let old = texts(rest);
    // A line that the file has somewhere is not misquoted: the hunk may belong there.
    let misquoted = edge.text.trim().is_empty() || !index.has(edge.text);
    if !misquoted || with_text(&old) < MIN_EVIDENCE {
        return Ok(None);
    }
    let ends_file = rest
        .iter()
        .any(|line| line.side != Side::Added && line.ends_file);
    let neighbour = match which {
        Edge::First => rest.first(),
        Edge::Last => rest.last(),
    };
    let hunk_start = |start: usize| match which {
        Edge::First => start.checked_sub(1),
        Edge::Last => Some(start),
    };
    let convinces = |start: &usize| {
        let is_stated = expected.map(|expected| hunk_start(*start) == Some(expected.moved));
        let in_file = match which {
            Edge::First => start.checked_sub(1),
            Edge::Last => Some(start + old.len()).filter(|at| *at < index.line_count()),
        };
        // An empty line resembles nothing, so nothing may depend on it.
        if edge.text.trim().is_empty() {
            is_stated != Some(false) && neighbour.is_some_and(|line| line.side != Side::Added)
        } else {
            is_stated == Some(true)
                || in_file.is_some_and(|at| resemble(edge.text.trim(), index.text(at).trim()))
        }
    };
    let mut starts = index.find_plain(&old)?;
    starts.retain(|start| !ends_file || start + old.len() == index.line_count());
    if !starts.iter().any(convinces) {
        return Ok(None);
    }
    // Several places are ambiguous even if only one of them convinces.
    let [start] = starts[..] else {
        return Err(Refusal::ambiguous(starts));
    };
    let rows: Vec<usize> = (start..start + old.len()).collect();
    Ok(Some(Place {
        start: hunk_start(start).unwrap_or(start),
        matched: start..start + old.len(),
        edits: edits(rest, &rows),
        difference: Some("with one misquoted context line"),
    }))
}

/// Returns the only place at which the file has one more line inside the hunk. Which of several
/// equal lines was left out does not matter.
fn with_line_left_out<'a>(
    index: &Index<'_>,
    hunk: &Hunk<'a>,
) -> Result<Option<Place<'a>>, Refusal> {
    let old = texts(&hunk.lines);
    let old_at: Vec<usize> = (0..hunk.lines.len())
        .filter(|at| hunk.lines[*at].side != Side::Added)
        .collect();
    let ends_file = hunk.old().last().is_some_and(|line| line.ends_file);
    let mut found: Option<Place<'a>> = None;
    let mut unclear = None;
    for (start, gap) in index.find_with_gap(&old)? {
        let end = start + old.len() + 1;
        if ends_file && end != index.line_count() {
            continue;
        }
        let (before, after) = (old_at[gap - 1], old_at[gap]);
        let context = [before, after]
            .into_iter()
            .filter(|at| hunk.lines[*at].side == Side::Context)
            .count();
        // The counts must not say that it was to be removed, and next to a removed line they must
        // say that it was not.
        let clear = after == before + 1
            && (context == 2 || (context == 1 && hunk.lacks(1)))
            && !hunk.lacks_removed()
            && with_text(&old[..gap]) > 0
            && with_text(&old[gap..]) > 0;
        if !clear {
            unclear = unclear.or(Some(start + gap));
            continue;
        }
        let rows: Vec<usize> = (start..end).filter(|row| *row != start + gap).collect();
        let edits = edits(&hunk.lines, &rows);
        if let Some(other) = found.as_ref().filter(|place| place.edits != edits) {
            return Err(Refusal::ambiguous([other.start, start]));
        }
        found = Some(Place {
            start,
            matched: start..end,
            edits,
            difference: Some("with one line of the file left out"),
        });
    }
    match unclear {
        Some(at) => Err(Refusal::LeftOut {
            line: quote(index.text(at)),
        }),
        None => Ok(found),
    }
}

fn texts<'a>(lines: &[Line<'a>]) -> Vec<&'a str> {
    let old = lines.iter().filter(|line| line.side != Side::Added);
    old.map(|line| line.text).collect()
}

fn with_text(lines: &[&str]) -> usize {
    lines.iter().filter(|line| !line.trim().is_empty()).count()
}

/// Tells whether two lines begin and end the same for at least half of the longer one.
fn resemble(left: &str, right: &str) -> bool {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let ahead = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let (left_rest, right_rest) = (&left[ahead..], &right[ahead..]);
    let pairs = left_rest.iter().rev().zip(right_rest.iter().rev());
    let behind = pairs.take_while(|(a, b)| a == b).count();
    2 * (ahead + behind) >= left.len().max(right.len())
}
