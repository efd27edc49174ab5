//! Detectors for patterns of circling. Each finds one pattern in the window.

use super::code::{CodeChange, is_generated};
use super::facts::IterationFacts;
use super::problems::OutputProblem;
use super::progress::all_problems;
use super::signal::GutterSignal;
use super::window::{IterationWindow, MAX_NAMED_FILES, RECENT_ITERATIONS};

/// A pattern must occur in this many of the last [`RECENT_ITERATIONS`] iterations.
const MIN_MATCHING_ITERATIONS: usize = 4;
/// The number of consecutive states in which a cycle is detected.
const CYCLE_STATES: usize = 6;
/// The fewest reformattings of the same files that count as circling.
const MIN_REFORMATTINGS: usize = 3;

/// Detects a problem that persists while its line number, values or surrounding code change.
pub(super) fn same_problem(window: &IterationWindow) -> Option<GutterSignal> {
    if window.has_solid_progress(RECENT_ITERATIONS) {
        return None;
    }
    let from = window.len().saturating_sub(RECENT_ITERATIONS);
    let newest = (from..window.len())
        .rev()
        .take(2)
        .find(|index| all_problems(window.at(*index)).next().is_some())?;
    let earlier: Vec<&IterationFacts> = (from..newest).map(|index| window.at(index)).collect();
    if window.has_fewer_problems(newest, &earlier) {
        return None;
    }
    let same: Vec<(u32, &OutputProblem)> = (from..=newest)
        .filter_map(|index| {
            let problem = persistent_problem(window, index, newest)?;
            Some((window.at(index).iteration, problem))
        })
        .collect();
    let (_, problem) = same.first()?;
    (same.len() >= MIN_MATCHING_ITERATIONS).then(|| GutterSignal::SameProblem {
        problem: problem.text.clone(),
        iterations: same.iter().map(|(iteration, _)| *iteration).collect(),
    })
}

/// Returns a problem common to both iterations if most of their problems are the same. A single
/// remaining error among fixed ones is not circling. Failing tests take precedence over messages.
fn persistent_problem(
    window: &IterationWindow,
    earlier: usize,
    newest: usize,
) -> Option<&OutputProblem> {
    let slack = window.line_slack(earlier, newest);
    let mut old: Vec<&OutputProblem> = all_problems(window.at(earlier)).collect();
    let mut new: Vec<&OutputProblem> = all_problems(window.at(newest)).collect();
    if [&old, &new]
        .iter()
        .all(|all| all.iter().any(|problem| problem.is_test()))
    {
        old.retain(|problem| problem.is_test());
        new.retain(|problem| problem.is_test());
    }
    let is_old =
        |problem: &&&OutputProblem| old.iter().any(|old| old.is_same_problem(problem, slack));
    let common: Vec<&&OutputProblem> = new.iter().filter(is_old).collect();
    let first = common.first()?;
    (common.len() * 2 > old.len().max(new.len())).then_some(**first)
}

/// Detects iterations that replace the code of the previous iteration.
pub(super) fn rewriting(window: &IterationWindow) -> Option<GutterSignal> {
    if window.has_solid_progress(RECENT_ITERATIONS) {
        return None;
    }
    let found: Vec<&IterationFacts> = window
        .last_changing(RECENT_ITERATIONS)
        .into_iter()
        .filter(|facts| facts.code.as_ref().is_some_and(CodeChange::is_rewriting))
        .collect();
    (found.len() >= MIN_MATCHING_ITERATIONS).then(|| GutterSignal::Rewriting {
        iterations: iteration_numbers(&found),
        gone: code_figures(&found, |code| code.gone),
        of: code_figures(&found, |code| code.of),
    })
}

fn code_figures(facts: &[&IterationFacts], figure: fn(&CodeChange) -> u32) -> Vec<u32> {
    facts
        .iter()
        .map(|facts| facts.code.as_ref().map_or(0, figure))
        .collect()
}

/// Detects an uncommitted diff that grows and never shrinks while failures continue.
pub(super) fn growing_diff(window: &IterationWindow) -> Option<GutterSignal> {
    let last: Vec<&IterationFacts> = window.last_n(RECENT_ITERATIONS).collect();
    let is_open = last.iter().all(|facts| facts.committed == Some(false));
    let failing = last
        .iter()
        .filter(|facts| !facts.failures.is_empty())
        .count();
    if last.len() < RECENT_ITERATIONS
        || !is_open
        || failing < MIN_MATCHING_ITERATIONS
        || window.has_solid_progress(RECENT_ITERATIONS)
    {
        return None;
    }
    let steps = || {
        last.windows(2)
            .map(|pair| (pair[0].diff_lines, pair[1].diff_lines))
    };
    let never_shrinks = steps().all(|(before, after)| after >= before);
    let grows = steps().filter(|(before, after)| after > before).count();
    (never_shrinks && grows + 1 >= MIN_MATCHING_ITERATIONS).then(|| GutterSignal::GrowingDiff {
        iterations: iteration_numbers(&last),
        lines: last.iter().map(|facts| facts.diff_lines).collect(),
    })
}

/// Detects files, or the whole repository, cycling through the same two to four states.
pub(super) fn cycle(window: &IterationWindow) -> Option<GutterSignal> {
    let changes: Vec<&IterationFacts> = window.iter().filter(|facts| facts.has_changes()).collect();
    let last = changes.last()?;
    let lacks_progress = |states: &[(u32, &str)]| {
        let first = states.first().map_or(0, |(iteration, _)| *iteration);
        let until_now = window
            .iter()
            .filter(|facts| facts.iteration >= first)
            .count();
        !window.has_solid_progress(until_now)
    };
    let trees: Vec<(u32, &str)> = newest_states(
        changes
            .iter()
            .map(|facts| (facts.iteration, facts.tree.as_str())),
    );
    if !trees.iter().any(|(_, tree)| tree.is_empty())
        && let Some(period) = period(&trees)
        && lacks_progress(&trees)
    {
        return Some(GutterSignal::Cycle {
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
        let states = newest_states(changes.iter().filter_map(|facts| {
            let state = facts.files.iter().find(|state| state.path == file.path)?;
            Some((facts.iteration, state.after.as_deref().unwrap_or("gone")))
        }));
        if let Some(period) = period(&states).filter(|_| lacks_progress(&states)) {
            files.push(file.path.clone());
            found = Some((
                period,
                states.iter().map(|(iteration, _)| *iteration).collect(),
            ));
        }
    }
    // A single file of many that returns to earlier content is probably a generated one.
    let (period, iterations) = found.filter(|_| files.len() * 2 >= written.len())?;
    files.truncate(MAX_NAMED_FILES);
    Some(GutterSignal::Cycle {
        period,
        files,
        iterations,
    })
}

/// Returns the newest [`CYCLE_STATES`] states, oldest first.
fn newest_states<'a>(
    states: impl DoubleEndedIterator<Item = (u32, &'a str)>,
) -> Vec<(u32, &'a str)> {
    let mut newest: Vec<(u32, &str)> = states.rev().take(CYCLE_STATES).collect();
    newest.reverse();
    newest
}

/// Returns the number of states after which the sequence repeats, if it does.
fn period(states: &[(u32, &str)]) -> Option<u32> {
    if states.len() < CYCLE_STATES {
        return None;
    }
    (2..=4_u32).find(|period| {
        let length = usize::try_from(*period).unwrap_or(CYCLE_STATES);
        let repeats = (length..CYCLE_STATES).all(|at| states[at].1 == states[at - length].1);
        let mut distinct: Vec<&str> = states[..length].iter().map(|(_, state)| *state).collect();
        distinct.sort_unstable();
        distinct.dedup();
        repeats && distinct.len() == length
    })
}

/// Detects files that are reformatted repeatedly. At least two of these iterations must also
/// replace lines of the iteration before: formatting more files each time is not circling.
pub(super) fn reformatting(window: &IterationWindow) -> Option<GutterSignal> {
    if window.has_solid_progress(RECENT_ITERATIONS) {
        return None;
    }
    let changes = window.last_changing(RECENT_ITERATIONS);
    let is_formatting =
        |facts: &IterationFacts| facts.code.as_ref().is_some_and(|code| code.formatting_only);
    let rewrites = changes
        .iter()
        .filter(|facts| {
            is_formatting(facts) && facts.code.as_ref().is_some_and(CodeChange::is_rewriting)
        })
        .count();
    let formatting: Vec<&IterationFacts> = changes
        .into_iter()
        .filter(|facts| is_formatting(facts))
        .collect();
    let last = formatting.last()?;
    let same: Vec<&IterationFacts> = formatting
        .iter()
        .filter(|facts| {
            last.files
                .iter()
                .any(|file| facts.files.iter().any(|old| old.path == file.path))
        })
        .copied()
        .collect();
    (same.len() >= MIN_REFORMATTINGS && rewrites + 1 >= MIN_REFORMATTINGS).then(|| {
        GutterSignal::Reformatting {
            iterations: iteration_numbers(&same),
            file: last
                .files
                .first()
                .map(|file| file.path.clone())
                .unwrap_or_default(),
        }
    })
}

/// Detects iterations that run commands but change nothing.
pub(super) fn read_only(window: &IterationWindow) -> Option<GutterSignal> {
    let last: Vec<&IterationFacts> = window.last_n(RECENT_ITERATIONS).collect();
    let is_unchanged =
        last.len() == RECENT_ITERATIONS && last.iter().all(|facts| !facts.has_changes());
    let has_run = last.iter().any(|facts| facts.commands > 0);
    (is_unchanged && has_run && !window.has_solid_progress(RECENT_ITERATIONS)).then(|| {
        GutterSignal::Reading {
            iterations: iteration_numbers(&last),
            commands: last.iter().map(|facts| facts.commands).collect(),
        }
    })
}

fn iteration_numbers(facts: &[&IterationFacts]) -> Vec<u32> {
    facts.iter().map(|facts| facts.iteration).collect()
}
