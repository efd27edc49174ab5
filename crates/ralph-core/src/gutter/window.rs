//! The last iterations, and what they say together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::circles::{cycle, growing_diff, reading, reformatting, rewriting, same_problem};
use super::facts::{Facts, TestFacts};
use super::progress::{moved_on, no_progress, recent_progress};
use super::score::Score;
use super::signal::{Signal, Thrash};
use crate::verdict::TestCount;

/// In so many iterations a failure is looked for, and so many without a deed are idle.
pub(super) const RECENT: usize = 5;
/// So often must a failure repeat, and so long must nothing change.
const REPEATS: usize = 3;
/// So many states of a file make a flip.
const FLIP: usize = 4;
/// So many thrashed files are named.
pub(super) const NAMED_FILES: usize = 8;

/// The facts of the last iterations, oldest first. It never holds more than [`Window::LENGTH`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    facts: VecDeque<Facts>,
}

impl Window {
    /// How many iterations are remembered: enough for a file's four states with others between them.
    pub const LENGTH: usize = 10;

    /// Takes in an iteration; the oldest is forgotten.
    pub fn push(&mut self, facts: Facts) {
        self.facts.push_back(facts);
        while self.facts.len() > Self::LENGTH {
            self.facts.pop_front();
        }
    }

    /// Returns the last iteration.
    pub fn last(&self) -> Option<&Facts> {
        self.facts.back()
    }

    /// Returns all of them, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Facts> {
        self.facts.iter()
    }

    pub(super) fn last_ones(&self, count: usize) -> impl Iterator<Item = &Facts> {
        self.facts
            .iter()
            .skip(self.facts.len().saturating_sub(count))
    }

    /// Returns the last iterations that changed a file, oldest first.
    pub(super) fn last_changes(&self, count: usize) -> Vec<&Facts> {
        let changes = self.facts.iter().filter(|facts| facts.has_changes());
        let mut last: Vec<&Facts> = changes.rev().take(count).collect();
        last.reverse();
        last
    }

    pub(super) fn len(&self) -> usize {
        self.facts.len()
    }

    pub(super) fn at(&self, index: usize) -> &Facts {
        &self.facts[index]
    }

    pub(super) fn before(&self, index: usize) -> Vec<&Facts> {
        self.facts.iter().take(index).collect()
    }
}

/// What a task can say about the measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Fewer changed lines than this are hardly a change.
    pub min_net_lines: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_net_lines: 3 }
    }
}

/// A score and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// The score.
    pub score: Score,
    /// Its parts; their tenths add up to it.
    pub signals: Vec<Signal>,
    /// Whether the last iteration brought the run closer to its end.
    pub progress: bool,
}

/// Weighs a window whose last iteration is the one that just ended.
pub fn measure(window: &Window, settings: Settings) -> Measured {
    let repeated = repeated_failure(window);
    // The same problem in the same words is counted once.
    let same = same_problem(window).filter(|_| repeated.is_none());
    let closer = tests_closer(window);
    let moved = moved_on(window, repeated.as_ref());
    // A command that fails again and again says more than that nothing changed.
    let has_same_error = moved.is_none() && (repeated.is_some() || same.is_some());
    let growing = growing_diff(window).filter(|_| has_same_error);
    let reading = reading(window).filter(|_| repeated.is_none());
    let mut signals: Vec<Signal> = [
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
    let closer = |signal: &Signal| matches!(signal, Signal::TestsCloser { .. });
    let progress = signals.iter().any(closer) || has_new_box(window);
    Measured {
        score: Score::of_tenths(signals.iter().map(Signal::tenths).sum()),
        signals,
        progress,
    }
}

/// The most frequent failure of the last iterations, if it is frequent enough.
fn repeated_failure(window: &Window) -> Option<Signal> {
    let mut seen: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for facts in window.last_ones(RECENT) {
        // Once per iteration, however often it failed there.
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
        .filter(|(_, iterations)| iterations.len() >= REPEATS)
        .max_by_key(|(_, iterations)| iterations.len())?;
    let failure = window
        .iter()
        .rev()
        .flat_map(|facts| &facts.failures)
        .find(|failure| failure.signature.as_str() == signature)?;
    Some(Signal::RepeatedFailure {
        command: failure.command.clone(),
        ended: failure.ended.clone(),
        signature: failure.signature.clone(),
        iterations,
    })
}

fn stagnation(window: &Window, settings: Settings) -> Option<Signal> {
    let still =
        |facts: &&Facts| facts.changed_lines < settings.min_net_lines && facts.binary_files == 0;
    let mut run: Vec<&Facts> = window.iter().rev().take_while(still).collect();
    run.reverse();
    (run.len() >= REPEATS).then(|| Signal::Stagnation {
        iterations: run.iter().map(|facts| facts.iteration).collect(),
        lines: run.iter().map(|facts| facts.changed_lines).collect(),
        enough: settings.min_net_lines,
    })
}

/// Files that the last change took back to what they were two changes before, twice.
fn file_thrash(window: &Window) -> Option<Signal> {
    let last = window.iter().rev().find(|facts| facts.has_changes())?;
    let files: Vec<Thrash> = last
        .files
        .iter()
        .filter_map(|file| flip(window, &file.path))
        .take(NAMED_FILES)
        .collect();
    (!files.is_empty()).then_some(Signal::FileThrash { files })
}

fn flip(window: &Window, path: &str) -> Option<Thrash> {
    let changes: Vec<(u32, &Option<String>)> = window
        .iter()
        .rev()
        .filter_map(|facts| {
            let mark = facts.files.iter().find(|file| file.path == path)?;
            Some((facts.iteration, &mark.after))
        })
        .take(FLIP)
        .collect();
    let [(_, d), (_, c), (_, b), (_, a)] = changes.as_slice() else {
        return None;
    };
    (a == c && b == d && a != b).then(|| Thrash {
        path: path.to_owned(),
        iterations: changes.iter().rev().map(|(number, _)| *number).collect(),
    })
}

fn idle(window: &Window) -> Option<Signal> {
    let last: Vec<&Facts> = window.last_ones(RECENT).collect();
    (last.len() == RECENT && last.iter().all(|facts| facts.is_idle())).then(|| Signal::Idle {
        iterations: last.iter().map(|facts| facts.iteration).collect(),
    })
}

/// Compares the tests of the last iteration with the best of the window before it. Fewer failures
/// count only if no tests went missing: leaving tests out is not getting closer.
fn tests_closer(window: &Window) -> Option<Signal> {
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
        return closer.then_some(Signal::TestsCloser {
            failed_before: Some(best.failed),
            failed_now: Some(count.failed),
            since,
        });
    }
    let (since, _) = *earlier.last()?;
    let first_green = now.green && earlier.iter().all(|(_, tests)| !tests.green);
    first_green.then_some(Signal::TestsCloser {
        failed_before: None,
        failed_now: None,
        since,
    })
}

fn has_new_box(window: &Window) -> bool {
    let mut latest = window.iter().rev();
    let now = latest.next().map_or(0, |facts| facts.boxes_ticked);
    let before = latest.next().map_or(0, |facts| facts.boxes_ticked);
    now > before
}
