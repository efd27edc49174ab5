//! The window of recent iterations and its measurement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::circles::{cycle, growing_diff, read_only, reformatting, rewriting, same_problem};
use super::facts::{IterationFacts, TestFacts};
use super::progress::{no_progress, problems_changed, recent_progress};
use super::score::LoopScore;
use super::signal::{GutterSignal, ThrashedFile};
use crate::verdict::TestCount;

/// The number of recent iterations in which patterns are detected.
pub(super) const RECENT_ITERATIONS: usize = 5;
/// The fewest repetitions of a failure, and the fewest stagnant iterations, that count.
const MIN_REPEATS: usize = 3;
/// The number of states in which a file must alternate between two versions.
const FLIP_STATES: usize = 4;
/// The most files listed in a signal.
pub(super) const MAX_NAMED_FILES: usize = 8;

/// The facts of the last [`IterationWindow::LENGTH`] iterations, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IterationWindow {
    facts: VecDeque<IterationFacts>,
}

impl IterationWindow {
    /// Long enough for four states of a file with other iterations in between.
    pub const LENGTH: usize = 10;

    /// Adds an iteration and drops the oldest if the window is full.
    pub fn push(&mut self, facts: IterationFacts) {
        self.facts.push_back(facts);
        while self.facts.len() > Self::LENGTH {
            self.facts.pop_front();
        }
    }

    /// Returns the last iteration.
    pub fn last(&self) -> Option<&IterationFacts> {
        self.facts.back()
    }

    /// Returns all iterations, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &IterationFacts> {
        self.facts.iter()
    }

    pub(super) fn last_n(&self, count: usize) -> impl Iterator<Item = &IterationFacts> {
        self.facts
            .iter()
            .skip(self.facts.len().saturating_sub(count))
    }

    /// Returns the last `count` iterations that changed a file, oldest first.
    pub(super) fn last_changing(&self, count: usize) -> Vec<&IterationFacts> {
        let changes = self.facts.iter().filter(|facts| facts.has_changes());
        let mut last: Vec<&IterationFacts> = changes.rev().take(count).collect();
        last.reverse();
        last
    }

    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    pub(super) fn at(&self, index: usize) -> &IterationFacts {
        &self.facts[index]
    }

    pub(super) fn before(&self, index: usize) -> Vec<&IterationFacts> {
        self.facts.iter().take(index).collect()
    }
}

/// Settings of the measurement, from the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GutterSettings {
    /// Iterations with fewer changed lines count as stagnant.
    pub min_net_lines: u64,
}

impl Default for GutterSettings {
    fn default() -> Self {
        Self { min_net_lines: 3 }
    }
}

/// A loop score with its components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GutterMeasurement {
    pub score: LoopScore,
    /// Their tenths add up to the score before it is clamped.
    pub signals: Vec<GutterSignal>,
    /// Whether the last iteration ticked a box or improved the tests.
    pub progress: bool,
}

/// Measures circling in a window that ends with the iteration that just finished.
pub fn measure(window: &IterationWindow, settings: GutterSettings) -> GutterMeasurement {
    let repeated = repeated_failure(window);
    // A repeated failure already covers the same problem with the same output.
    let same = same_problem(window).filter(|_| repeated.is_none());
    let closer = tests_improved(window);
    let moved = problems_changed(window, repeated.as_ref());
    // A growing diff is suspicious only with a recurring error, and a repeated failure is more
    // significant than the lack of changes.
    let has_same_error = moved.is_none() && (repeated.is_some() || same.is_some());
    let growing = growing_diff(window).filter(|_| has_same_error);
    let reading = read_only(window).filter(|_| repeated.is_none());
    let mut signals: Vec<GutterSignal> = [
        repeated,
        stagnation(window, settings),
        file_thrash(window),
        idle(window),
        same,
        rewriting(window),
        growing,
        cycle(window),
        reformatting(window),
        reading,
        no_progress(window),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_suspicious = !signals.is_empty();
    let recent = recent_progress(window).filter(|_| is_suspicious);
    signals.extend(closer.or(recent).or(moved));
    let closer = |signal: &GutterSignal| matches!(signal, GutterSignal::TestsCloser { .. });
    let progress = signals.iter().any(closer) || has_new_box(window);
    GutterMeasurement {
        score: LoopScore::from_tenths(signals.iter().map(GutterSignal::tenths).sum()),
        signals,
        progress,
    }
}

/// Detects the most frequent failure of the recent iterations.
fn repeated_failure(window: &IterationWindow) -> Option<GutterSignal> {
    let mut seen: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for facts in window.last_n(RECENT_ITERATIONS) {
        // Counted once per iteration, even if it failed several times there.
        let signatures: BTreeSet<&str> = facts
            .failures
            .iter()
            .map(|failure| failure.signature.as_str())
            .collect();
        for signature in signatures {
            seen.entry(signature).or_default().push(facts.iteration);
        }
    }
    let (signature, iterations) = seen
        .into_iter()
        .filter(|(_, iterations)| iterations.len() >= MIN_REPEATS)
        .max_by_key(|(_, iterations)| iterations.len())?;
    let failure = window
        .iter()
        .rev()
        .flat_map(|facts| &facts.failures)
        .find(|failure| failure.signature.as_str() == signature)?;
    Some(GutterSignal::RepeatedFailure {
        command: failure.command.clone(),
        ended: failure.ended.clone(),
        signature: failure.signature.clone(),
        iterations,
    })
}

fn stagnation(window: &IterationWindow, settings: GutterSettings) -> Option<GutterSignal> {
    let is_stagnant = |facts: &&IterationFacts| {
        facts.changed_lines < settings.min_net_lines && facts.binary_files == 0
    };
    let mut stagnant: Vec<&IterationFacts> = window.iter().rev().take_while(is_stagnant).collect();
    stagnant.reverse();
    (stagnant.len() >= MIN_REPEATS).then(|| GutterSignal::Stagnation {
        iterations: stagnant.iter().map(|facts| facts.iteration).collect(),
        lines: stagnant.iter().map(|facts| facts.changed_lines).collect(),
        enough: settings.min_net_lines,
    })
}

/// Detects files of the last change whose last four states alternate between two versions.
fn file_thrash(window: &IterationWindow) -> Option<GutterSignal> {
    let last = window.iter().rev().find(|facts| facts.has_changes())?;
    let files: Vec<ThrashedFile> = last
        .files
        .iter()
        .filter_map(|file| flip(window, &file.path))
        .take(MAX_NAMED_FILES)
        .collect();
    (!files.is_empty()).then_some(GutterSignal::FileThrash { files })
}

fn flip(window: &IterationWindow, path: &str) -> Option<ThrashedFile> {
    let changes: Vec<(u32, &Option<String>)> = window
        .iter()
        .rev()
        .filter_map(|facts| {
            let state = facts.files.iter().find(|state| state.path == path)?;
            Some((facts.iteration, &state.after))
        })
        .take(FLIP_STATES)
        .collect();
    let [(_, d), (_, c), (_, b), (_, a)] = changes.as_slice() else {
        return None;
    };
    (a == c && b == d && a != b).then(|| ThrashedFile {
        path: path.to_owned(),
        iterations: changes.iter().rev().map(|(number, _)| *number).collect(),
    })
}

fn idle(window: &IterationWindow) -> Option<GutterSignal> {
    let last: Vec<&IterationFacts> = window.last_n(RECENT_ITERATIONS).collect();
    (last.len() == RECENT_ITERATIONS && last.iter().all(|facts| facts.is_idle())).then(|| {
        GutterSignal::Idle {
            iterations: last.iter().map(|facts| facts.iteration).collect(),
        }
    })
}

/// Compares the tests of the last iteration with the best earlier result of the window. Fewer
/// failures count only if no tests disappeared.
fn tests_improved(window: &IterationWindow) -> Option<GutterSignal> {
    let now = window.last()?.tests?;
    let earlier: Vec<(u32, TestFacts)> = window
        .iter()
        .take(window.facts.len() - 1)
        .filter_map(|facts| Some((facts.iteration, facts.tests?)))
        .collect();
    let counted = |(iteration, tests): &(u32, TestFacts)| Some((*iteration, tests.count?));
    let best: Option<(u32, TestCount)> = earlier
        .iter()
        .filter_map(counted)
        .min_by_key(|(_, count)| count.failed);
    if let (Some(count), Some((since, best))) = (now.count, best) {
        let closer = count.failed < best.failed && count.ran() >= best.ran();
        return closer.then_some(GutterSignal::TestsCloser {
            failed_before: Some(best.failed),
            failed_now: Some(count.failed),
            since,
        });
    }
    let (since, _) = *earlier.last()?;
    let first_green = now.green && earlier.iter().all(|(_, tests)| !tests.green);
    first_green.then_some(GutterSignal::TestsCloser {
        failed_before: None,
        failed_now: None,
        since,
    })
}

fn has_new_box(window: &IterationWindow) -> bool {
    let mut latest = window.iter().rev();
    let now = latest.next().map_or(0, |facts| facts.boxes_ticked);
    let before = latest.next().map_or(0, |facts| facts.boxes_ticked);
    now > before
}
