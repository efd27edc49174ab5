//! Signals of circling beyond those of the first version: each finds one shape of it in the window.

use super::code::{Code, is_generated};
use super::facts::Facts;
use super::problems::Problem;
use super::progress::problems;
use super::signal::Signal;
use super::window::{NAMED_FILES, RECENT, Window};

/// In so many of the last [`RECENT`] iterations must a pattern show.
const MOST: usize = 4;
/// So many states in a row show that a cycle came round.
const CYCLE: usize = 6;
/// So often are the same files reformatted to and fro.
const REFORMATTINGS: usize = 3;

/// Finds problems that stay while their output changes: other lines, other values, other code.
pub(super) fn same_problem(window: &Window) -> Option<Signal> {
    if window.has_solid_progress(RECENT) {
        return None;
    }
    let from = window.len().saturating_sub(RECENT);
    let newest = (from..window.len())
        .rev()
        .take(2)
        .find(|index| problems(window.at(*index)).next().is_some())?;
    let earlier: Vec<&Facts> = (from..newest).map(|index| window.at(index)).collect();
    if window.has_fewer_problems(newest, &earlier) {
        return None;
    }
    let same: Vec<(u32, &Problem)> = (from..=newest)
        .filter_map(|index| {
            let problem = stays(window, index, newest)?;
            Some((window.at(index).iteration, problem))
        })
        .collect();
    let (_, problem) = same.first()?;
    (same.len() >= MOST).then(|| Signal::SameProblem {
        problem: problem.text.clone(),
        iterations: same.iter().map(|(iteration, _)| *iteration).collect(),
    })
}

/// Returns a problem of both iterations, if most of their problems are the same: one error that stays
/// among others that are fixed is no circle. A failing test says more than the message it fails with.
fn stays(window: &Window, earlier: usize, newest: usize) -> Option<&Problem> {
    let slack = window.slack(earlier, newest);
    let mut old: Vec<&Problem> = problems(window.at(earlier)).collect();
    let mut new: Vec<&Problem> = problems(window.at(newest)).collect();
    if [&old, &new]
        .iter()
        .all(|all| all.iter().any(|problem| problem.is_test()))
    {
        old.retain(|problem| problem.is_test());
        new.retain(|problem| problem.is_test());
    }
    let is_old = |problem: &&&Problem| old.iter().any(|old| old.is_same(problem, slack));
    let common: Vec<&&Problem> = new.iter().filter(is_old).collect();
    let first = common.first()?;
    (common.len() * 2 > old.len().max(new.len())).then_some(**first)
}

/// Finds iterations that replace the code of the iteration before.
pub(super) fn rewriting(window: &Window) -> Option<Signal> {
    if window.has_solid_progress(RECENT) {
        return None;
    }
    let found: Vec<&Facts> = window
        .last_changes(RECENT)
        .into_iter()
        .filter(|facts| facts.code.as_ref().is_some_and(Code::is_rewriting))
        .collect();
    (found.len() >= MOST).then(|| Signal::Rewriting {
        iterations: numbers(&found),
        gone: codes(&found, |code| code.gone),
        of: codes(&found, |code| code.of),
    })
}

fn codes(facts: &[&Facts], figure: fn(&Code) -> u32) -> Vec<u32> {
    facts
        .iter()
        .map(|facts| facts.code.as_ref().map_or(0, figure))
        .collect()
}

/// Finds a diff that only grows, is never committed, and ends each time in a failure.
pub(super) fn growing_diff(window: &Window) -> Option<Signal> {
    let last: Vec<&Facts> = window.last_ones(RECENT).collect();
    let is_open = last.iter().all(|facts| facts.committed == Some(false));
    let failing = last
        .iter()
        .filter(|facts| !facts.failures.is_empty())
        .count();
    if last.len() < RECENT || !is_open || failing < MOST || window.has_solid_progress(RECENT) {
        return None;
    }
    let steps = || {
        last.windows(2)
            .map(|pair| (pair[0].diff_lines, pair[1].diff_lines))
    };
    let never_shrinks = steps().all(|(before, after)| after >= before);
    let grows = steps().filter(|(before, after)| after > before).count();
    (never_shrinks && grows + 1 >= MOST).then(|| Signal::GrowingDiff {
        iterations: numbers(&last),
        lines: last.iter().map(|facts| facts.diff_lines).collect(),
    })
}

/// Finds files, or the whole repository, that go through the same two to four states again.
pub(super) fn cycle(window: &Window) -> Option<Signal> {
    let changes: Vec<&Facts> = window.iter().filter(|facts| facts.has_changes()).collect();
    let last = changes.last()?;
    let span = |facts: &[(u32, &str)]| {
        let first = facts.first().map_or(0, |(iteration, _)| *iteration);
        let until_now = window
            .iter()
            .filter(|facts| facts.iteration >= first)
            .count();
        !window.has_solid_progress(until_now)
    };
    let trees: Vec<(u32, &str)> = newest(
        changes
            .iter()
            .map(|facts| (facts.iteration, facts.tree.as_str())),
    );
    if !trees.iter().any(|(_, tree)| tree.is_empty())
        && let Some(period) = period(&trees)
        && span(&trees)
    {
        return Some(Signal::Cycle {
            period,
            files: Vec::new(),
            iterations: trees.iter().map(|(iteration, _)| *iteration).collect(),
        });
    }
    let mut found: Option<(u32, Vec<u32>)> = None;
    let mut files = Vec::new();
    let written: Vec<_> = last
        .files
        .iter()
        .filter(|file| !is_generated(&file.path))
        .collect();
    for file in &written {
        let states = newest(changes.iter().filter_map(|facts| {
            let mark = facts.files.iter().find(|mark| mark.path == file.path)?;
            Some((facts.iteration, mark.after.as_deref().unwrap_or("gone")))
        }));
        if let Some(period) = period(&states).filter(|_| span(&states)) {
            files.push(file.path.clone());
            found = Some((
                period,
                states.iter().map(|(iteration, _)| *iteration).collect(),
            ));
        }
    }
    // One file of many that returns to an earlier content is most likely a generated one, too.
    let (period, iterations) = found.filter(|_| files.len() * 2 >= written.len())?;
    files.truncate(NAMED_FILES);
    Some(Signal::Cycle {
        period,
        files,
        iterations,
    })
}

/// Returns the newest states, oldest first.
fn newest<'a>(states: impl DoubleEndedIterator<Item = (u32, &'a str)>) -> Vec<(u32, &'a str)> {
    let mut newest: Vec<(u32, &str)> = states.rev().take(CYCLE).collect();
    newest.reverse();
    newest
}

/// Returns after how many states they repeat, if they do.
fn period(states: &[(u32, &str)]) -> Option<u32> {
    if states.len() < CYCLE {
        return None;
    }
    (2..=4_u32).find(|period| {
        let length = usize::try_from(*period).unwrap_or(CYCLE);
        let repeats = (length..CYCLE).all(|at| states[at].1 == states[at - length].1);
        let mut distinct: Vec<&str> = states[..length].iter().map(|(_, state)| *state).collect();
        distinct.sort_unstable();
        distinct.dedup();
        repeats && distinct.len() == length
    })
}

/// Finds files that are reformatted again and again.
pub(super) fn reformatting(window: &Window) -> Option<Signal> {
    if window.has_solid_progress(RECENT) {
        return None;
    }
    let changes = window.last_changes(RECENT);
    let is_formatting =
        |facts: &Facts| facts.code.as_ref().is_some_and(|code| code.formatting_only);
    let rewrites = changes
        .iter()
        .filter(|facts| is_formatting(facts) && facts.code.as_ref().is_some_and(Code::is_rewriting))
        .count();
    let formatting: Vec<&Facts> = changes
        .into_iter()
        .filter(|facts| is_formatting(facts))
        .collect();
    let last = formatting.last()?;
    let same: Vec<&Facts> = formatting
        .iter()
        .filter(|facts| {
            last.files
                .iter()
                .any(|file| facts.files.iter().any(|old| old.path == file.path))
        })
        .copied()
        .collect();
    (same.len() >= REFORMATTINGS && rewrites + 1 >= REFORMATTINGS).then(|| Signal::Reformatting {
        iterations: numbers(&same),
        file: last
            .files
            .first()
            .map(|file| file.path.clone())
            .unwrap_or_default(),
    })
}

/// Finds iterations that only read: commands ran, nothing changed.
pub(super) fn reading(window: &Window) -> Option<Signal> {
    let last: Vec<&Facts> = window.last_ones(RECENT).collect();
    let is_unchanged = last.len() == RECENT && last.iter().all(|facts| !facts.has_changes());
    let has_run = last.iter().any(|facts| facts.commands > 0);
    (is_unchanged && has_run && !window.has_solid_progress(RECENT)).then(|| Signal::Reading {
        iterations: numbers(&last),
        commands: last.iter().map(|facts| facts.commands).collect(),
    })
}

fn numbers(facts: &[&Facts]) -> Vec<u32> {
    facts.iter().map(|facts| facts.iteration).collect()
}
