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
    let mut places = with_line_left_out(index, hunk)?;
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

/// Returns the places of a hunk without its first or last line.
fn without_edge<'a>(
    index: &Index<'_>,
    edge: &Line<'_>,
    rest: &[Line<'a>],
    which: Edge,
    expected: Option<Expected>,
) -> Result<Vec<Place<'a>>, Refusal> {
    let old = texts(rest);
    // A line that the file has somewhere is not misquoted: the hunk may belong there.
    let misquoted = edge.text.trim().is_empty() || !index.has(edge.text);
    if !misquoted || with_text(&old) < MIN_EVIDENCE {
        return Ok(Vec::new());
    }
    let ends_file = rest
        .iter()
        .any(|line| line.side != Side::Added && line.ends_file);
    let mut places = Vec::new();
    let mut convinces = false;
    for start in index.find_plain(&old)? {
        let end = start + old.len();
        if ends_file && end != index.line_count() {
            continue;
        }
        let before = start.checked_sub(1);
        let (hunk_start, quoted) = match which {
            Edge::First => (before, before),
            Edge::Last => (Some(start), Some(end)),
        };
        let quoted = quoted.filter(|at| *at < index.line_count());
        convinces |= edge.text.trim().is_empty()
            || expected.is_some_and(|expected| hunk_start == Some(expected.moved))
            || quoted.is_some_and(|at| resemble(edge.text.trim(), index.text(at).trim()));
        let rows: Vec<usize> = (start..end).collect();
        places.push(Place {
            start: hunk_start.unwrap_or(start),
            matched: start..end,
            edits: edits(rest, &rows),
            difference: Some("with one misquoted context line"),
        });
    }
    // Several places are ambiguous even if only one of them convinces, so all are returned.
    Ok(if convinces { places } else { Vec::new() })
}

/// Returns the places at which the file has one more line inside the hunk.
fn with_line_left_out<'a>(index: &Index<'_>, hunk: &Hunk<'a>) -> Result<Vec<Place<'a>>, Refusal> {
    let old = texts(&hunk.lines);
    let old_at: Vec<usize> = (0..hunk.lines.len())
        .filter(|at| hunk.lines[*at].side != Side::Added)
        .collect();
    let ends_file = hunk.old().last().is_some_and(|line| line.ends_file);
    let mut places: Vec<Place<'a>> = Vec::new();
    let mut unclear = None;
    for (start, gap) in index.find_with_gap(&old)? {
        let end = start + old.len() + 1;
        if with_text(&old[..gap]) == 0
            || with_text(&old[gap..]) == 0
            || (ends_file && end != index.line_count())
        {
            continue;
        }
        let (before, after) = (old_at[gap - 1], old_at[gap]);
        let context = [before, after]
            .into_iter()
            .filter(|at| hunk.lines[*at].side == Side::Context)
            .count();
        // Next to a removed line, the counts must confirm that a context line is missing.
        let clear = after == before + 1 && (context == 2 || (context == 1 && hunk.lacks(1)));
        if !clear {
            unclear = unclear.or(Some(start + gap));
            continue;
        }
        let rows: Vec<usize> = (start..end).filter(|row| *row != start + gap).collect();
        places.push(Place {
            start,
            matched: start..end,
            edits: edits(&hunk.lines, &rows),
            difference: Some("with one line of the file left out"),
        });
    }
    match unclear {
        Some(at) => Err(Refusal::LeftOut {
            line: quote(index.text(at)),
        }),
        None => Ok(places),
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
