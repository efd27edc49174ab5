//! Detects progress, or the lack of it, in a window of iterations.

use std::collections::BTreeSet;

use super::facts::{IterationFacts, TestFacts};
use super::problems::OutputProblem;
use super::signal::GutterSignal;
use super::window::{IterationWindow, RECENT_ITERATIONS};

/// A run is circling after this many iterations without progress.
pub(super) const MAX_ITERATIONS_WITHOUT_PROGRESS: usize = 6;
/// A newly ticked box or a better test result counts as recent for this many iterations.
const RECENT_PROGRESS_ITERATIONS: usize = 2;
/// A problem may move by this many lines, plus [`LINE_SLACK_PER_CHANGE`] per changed line.
const LINE_SLACK: u64 = 2;
const LINE_SLACK_PER_CHANGE: u64 = 3;

/// The progress of an iteration compared with all earlier iterations of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgressKind {
    None,
    /// Different problems than before, or fewer of them.
    Problems,
    /// A commit with a new state of the files.
    Commit,
    /// A newly ticked box or a better test result.
    Solid,
}

impl IterationWindow {
    /// Returns whether one of the last `last` iterations ticked a box or improved the tests.
    pub(super) fn has_solid_progress(&self, last: usize) -> bool {
        let from = self.len().saturating_sub(last);
        (from..self.len()).any(|index| self.is_solid_progress(index))
    }

    fn is_solid_progress(&self, index: usize) -> bool {
        let (earlier, facts) = (self.before(index), &self.at(index));
        let boxes_before = earlier.last().map(|facts| facts.boxes_ticked);
        boxes_before.is_some_and(|before| facts.boxes_ticked > before)
            || facts
                .tests
                .is_some_and(|now| is_better_result(now, &earlier))
    }

    fn progress_at(&self, index: usize) -> ProgressKind {
        if self.is_solid_progress(index) {
            return ProgressKind::Solid;
        }
        let (earlier, facts) = (self.before(index), self.at(index));
        let is_new = facts.tree.is_empty() || earlier.iter().all(|old| old.tree != facts.tree);
        match facts.committed {
            // Facts of older versions do not record commits.
            None => ProgressKind::Commit,
            Some(true) if is_new => ProgressKind::Commit,
            Some(_) if self.has_other_problems(index) => ProgressKind::Problems,
            Some(_) => ProgressKind::None,
        }
    }

    /// Returns whether none of the previous problems remains and a new one appeared, or whether a
    /// command reports fewer problems than ever before.
    fn has_other_problems(&self, index: usize) -> bool {
        let facts = self.at(index);
        let problems: Vec<&OutputProblem> = all_problems(facts).collect();
        let Some(previous) = (0..index).rev().find(|at| has_problems(self.at(*at))) else {
            return false;
        };
        if problems.is_empty() {
            return false;
        }
        let slack = self.line_slack(previous, index);
        let stays = |problem: &&OutputProblem| {
            self::all_problems(self.at(previous)).any(|old| old.is_same_problem(problem, slack))
        };
        let is_unseen = |problem: &&OutputProblem| {
            (0..index).all(|at| {
                let slack = self.line_slack(at, index);
                self::all_problems(self.at(at)).all(|old| !old.is_same_problem(problem, slack))
            })
        };
        let moved = !problems.iter().any(stays) && problems.iter().any(is_unseen);
        moved || self.has_fewer_problems(index, &self.before(index))
    }

    /// Returns whether a command reports fewer problems than in all `earlier` iterations.
    pub(super) fn has_fewer_problems(&self, index: usize, earlier: &[&IterationFacts]) -> bool {
        self.at(index).failures.iter().any(|failure| {
            let before = earlier
                .iter()
                .flat_map(|facts| &facts.failures)
                .filter(|old| old.command == failure.command && old.problems.count > 0)
                .map(|old| old.problems.count)
                .min();
            failure.problems.count > 0
                && before.is_some_and(|before| failure.problems.count < before)
        })
    }

    /// Returns the most lines by which a problem can have moved between two iterations.
    pub(super) fn line_slack(&self, from: usize, to: usize) -> u64 {
        let changed = (from + 1..=to).map(|index| self.at(index).changed_lines);
        let changed = changed.fold(0, u64::saturating_add);
        changed
            .saturating_mul(LINE_SLACK_PER_CHANGE)
            .saturating_add(LINE_SLACK)
    }
}

/// Returns the problems of all failures of an iteration.
pub(super) fn all_problems(facts: &IterationFacts) -> impl Iterator<Item = &OutputProblem> {
    facts
        .failures
        .iter()
        .flat_map(|failure| &failure.problems.kept)
}

fn has_problems(facts: &IterationFacts) -> bool {
    all_problems(facts).next().is_some()
}

/// Returns whether the test result is the best so far: fewer failures, more passes, or green for
/// the first time. Fewer failures count only if no tests disappeared.
fn is_better_result(now: TestFacts, earlier: &[&IterationFacts]) -> bool {
    let before: Vec<TestFacts> = earlier.iter().filter_map(|facts| facts.tests).collect();
    if before.is_empty() {
        return false;
    }
    let counts: Vec<_> = before.iter().filter_map(|tests| tests.count).collect();
    let fewest = counts.iter().min_by_key(|count| count.failed);
    if let (Some(count), Some(best)) = (now.count, fewest) {
        let most = counts.iter().map(|count| count.passed).max();
        let fails_less = count.failed < best.failed && count.ran() >= best.ran();
        let passes_more = count.failed <= best.failed && Some(count.passed) > most;
        return fails_less || passes_more;
    }
    now.green && before.iter().all(|tests| !tests.green)
}

/// Detects that the latest iterations had no new box, new commit or better test result. Different
/// problems also count as progress, but not for longer than the window.
pub(super) fn no_progress(window: &IterationWindow) -> Option<GutterSignal> {
    let all: Vec<ProgressKind> = (0..window.len())
        .map(|index| window.progress_at(index))
        .collect();
    let trailing_without = |kinds: &[ProgressKind]| {
        let is_other = |progress: &&ProgressKind| !kinds.contains(progress);
        all.iter().rev().take_while(is_other).count()
    };
    let without_any = trailing_without(&[
        ProgressKind::Problems,
        ProgressKind::Commit,
        ProgressKind::Solid,
    ]);
    let without_lasting = trailing_without(&[ProgressKind::Commit, ProgressKind::Solid]);
    let count = match (without_any, without_lasting) {
        (_, count) if count >= IterationWindow::LENGTH => count,
        (count, _) if count >= MAX_ITERATIONS_WITHOUT_PROGRESS => count,
        (_, _) => return None,
    };
    Some(GutterSignal::NoProgress {
        iterations: window.last_n(count).map(|facts| facts.iteration).collect(),
    })
}

/// Detects a recently ticked box or better test result, unless more tests fail since. The last
/// iteration itself is excluded.
pub(super) fn recent_progress(window: &IterationWindow) -> Option<GutterSignal> {
    let last = window.len().checked_sub(1)?;
    let index = (last.saturating_sub(RECENT_PROGRESS_ITERATIONS)..last)
        .rev()
        .find(|index| window.is_solid_progress(*index))?;
    let failed = |index: usize| window.at(index).tests?.count.map(|count| count.failed);
    let then = failed(index);
    let is_lost = (index + 1..=last)
        .any(|at| failed(at).is_some_and(|now| then.is_some_and(|then| now > then)));
    (!is_lost).then(|| GutterSignal::RecentProgress {
        iteration: window.at(index).iteration,
    })
}

/// Detects a repeated failure whose problems change or become fewer: some build tools print the
/// same message for every error.
pub(super) fn problems_changed(
    window: &IterationWindow,
    repeated: Option<&GutterSignal>,
) -> Option<GutterSignal> {
    let Some(GutterSignal::RepeatedFailure { signature, .. }) = repeated else {
        return None;
    };
    let from = window.len().saturating_sub(RECENT_ITERATIONS);
    let seen: Vec<(usize, &[OutputProblem], u32)> = (from..window.len())
        .filter_map(|index| {
            let failures = &window.at(index).failures;
            let failure = failures
                .iter()
                .find(|failure| failure.signature == *signature)?;
            Some((
                index,
                failure.problems.kept.as_slice(),
                failure.problems.count,
            ))
        })
        .collect();
    let ((last, problems, count), earlier) = seen.split_last()?;
    if *last + 1 != window.len() || seen.iter().any(|(_, problems, _)| problems.is_empty()) {
        return None;
    }
    let is_in = |problem: &OutputProblem, (index, old, _): &(usize, &[OutputProblem], u32)| {
        let slack = window.line_slack(*index, *last);
        old.iter().any(|old| old.is_same_problem(problem, slack))
    };
    let stays = problems
        .iter()
        .any(|problem| earlier.iter().all(|old| is_in(problem, old)));
    let unseen = problems
        .iter()
        .find(|problem| !earlier.iter().any(|old| is_in(problem, old)));
    let is_fewer = earlier.iter().all(|(_, _, before)| count < before);
    let problem = match unseen.filter(|_| !stays) {
        Some(problem) => problem,
        None => problems.first().filter(|_| is_fewer)?,
    };
    let iterations: BTreeSet<u32> = seen
        .iter()
        .map(|(index, ..)| window.at(*index).iteration)
        .collect();
    Some(GutterSignal::MovedOn {
        problem: problem.text.clone(),
        iterations: iterations.into_iter().collect(),
    })
}
