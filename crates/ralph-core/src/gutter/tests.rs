//! Tests for the exact score of each pattern.

use super::*;
use crate::id::Digest;
use crate::verdict::TestCount;

/// Returns an iteration in which a command ran and enough lines changed.
fn busy_facts(iteration: u32) -> IterationFacts {
    IterationFacts {
        iteration,
        commands: 1,
        changed_lines: 10,
        files: vec![file_state("busy.rs", Some(&format!("content {iteration}")))],
        ..IterationFacts::default()
    }
}

fn file_state(path: &str, after: Option<&str>) -> FileState {
    FileState {
        path: path.into(),
        after: after.map(str::to_owned),
    }
}

fn failing_facts(iteration: u32, stderr: &str) -> IterationFacts {
    let signature = signature("npm test", 1, stderr, "");
    IterationFacts {
        failures: vec![FailureFacts::new(signature, "npm test", "exit 1")],
        ..busy_facts(iteration)
    }
}

fn unchanged_facts(iteration: u32, changed_lines: u64) -> IterationFacts {
    IterationFacts {
        changed_lines,
        files: Vec::new(),
        ..busy_facts(iteration)
    }
}

/// Returns an iteration that leaves a file with this content; `None` deletes it.
fn facts_with_file(iteration: u32, path: &str, after: Option<&str>) -> IterationFacts {
    IterationFacts {
        files: vec![file_state(path, after)],
        ..busy_facts(iteration)
    }
}

fn tested_facts(iteration: u32, passed: u64, failed: u64) -> IterationFacts {
    IterationFacts {
        tests: Some(TestFacts {
            green: failed == 0,
            count: Some(TestCount {
                xfailed: 0,
                passed,
                failed,
                skipped: 0,
            }),
        }),
        ..failing_facts(iteration, "npm ERR! Test failed")
    }
}

fn window(facts: impl IntoIterator<Item = IterationFacts>) -> IterationWindow {
    let mut window = IterationWindow::default();
    facts.into_iter().for_each(|facts| window.push(facts));
    window
}

fn measure_facts(facts: impl IntoIterator<Item = IterationFacts>) -> GutterMeasurement {
    measure(&window(facts), GutterSettings::default())
}

/// Returns the score with the names of its signals.
fn score_facts(facts: impl IntoIterator<Item = IterationFacts>) -> String {
    let measured = measure_facts(facts);
    let names: Vec<&str> = measured.signals.iter().map(GutterSignal::name).collect();
    format!("{} {}", measured.score, names.join(" "))
}

fn numbered<T>(items: &[T], make: impl Fn(u32, &T) -> IterationFacts) -> Vec<IterationFacts> {
    (1_u32..)
        .zip(items)
        .map(|(n, item)| make(n, item))
        .collect()
}

#[test]
fn a_repeated_failure_scores_one_half() {
    for (errors, score) in [
        (vec!["a", "a"], "0.0 "),
        (vec!["a", "a", "a"], "0.5 repeated_failure"),
        (vec!["a", "b", "a", "b", "a"], "0.5 repeated_failure"),
        (vec!["a", "b", "c"], "0.0 "),
        // Three failures, but not within the last five iterations.
        (vec!["a", "a", "b", "c", "d", "a"], "0.0 "),
        (
            vec!["at 10:00:01", "at 10:00:02", "at 10:00:03"],
            "0.5 repeated_failure",
        ),
    ] {
        assert_eq!(
            score_facts(numbered(&errors, |n, e| failing_facts(n, e))),
            score,
            "{errors:?}"
        );
    }
}

#[test]
fn a_failure_counts_once_per_iteration() {
    let twice = |n| {
        let mut facts = failing_facts(n, "a");
        facts.failures.push(facts.failures[0].clone());
        facts
    };
    assert_eq!(score_facts([twice(1), twice(2)]), "0.0 ");
}

#[test]
fn stagnation_scores_three_tenths() {
    for (lines, score) in [
        (vec![0, 0], "0.0 "),
        (vec![0, 0, 0], "0.3 stagnation"),
        (vec![2, 2, 2], "0.3 stagnation"),
        (vec![3, 3, 3], "0.0 "),
        (vec![0, 0, 3, 0], "0.0 "),
        (vec![9, 0, 1, 2, 0], "0.3 stagnation"),
    ] {
        assert_eq!(
            score_facts(numbered(&lines, |n, l| unchanged_facts(n, *l))),
            score,
            "{lines:?}"
        );
    }
    let image = |n| IterationFacts {
        binary_files: 1,
        ..unchanged_facts(n, 0)
    };
    assert_eq!(score_facts([1, 2, 3].map(image)), "0.0 ");
}

#[test]
fn a_flip_scores_two_tenths() {
    let gone = None;
    for (states, score) in [
        (vec![Some("A"), Some("B"), Some("A")], "0.0 "),
        (
            vec![Some("A"), Some("B"), Some("A"), Some("B")],
            "0.2 file_thrash",
        ),
        (vec![Some("A"), Some("B"), Some("C"), Some("A")], "0.0 "),
        (
            vec![
                Some("A"),
                Some("B"),
                Some("C"),
                Some("A"),
                Some("B"),
                Some("C"),
            ],
            "0.7 cycle",
        ),
        (vec![Some("A"), Some("A"), Some("A"), Some("A")], "0.0 "),
        (vec![Some("A"), Some("A"), Some("B"), Some("B")], "0.0 "),
        (vec![Some("A"), gone, Some("A"), gone], "0.2 file_thrash"),
        (vec![gone, Some("A"), gone, Some("A")], "0.2 file_thrash"),
    ] {
        let facts = numbered(&states, |n, state| facts_with_file(n, "a.rs", *state));
        assert_eq!(score_facts(facts), score, "{states:?}");
    }
}

#[test]
fn reverting_a_rename_is_a_flip_of_both_names() {
    let renamed = |n, from: &str, to: &str| IterationFacts {
        files: vec![file_state(from, None), file_state(to, Some("same"))],
        ..busy_facts(n)
    };
    let measured = measure_facts([
        renamed(1, "a", "b"),
        renamed(2, "b", "a"),
        renamed(3, "a", "b"),
        renamed(4, "b", "a"),
    ]);
    let thrash = |path: &str| ThrashedFile {
        path: path.into(),
        iterations: vec![1, 2, 3, 4],
    };
    assert_eq!(
        measured.signals,
        [GutterSignal::FileThrash {
            files: vec![thrash("b"), thrash("a")]
        }]
    );
}

#[test]
fn a_flip_may_be_interrupted_but_must_be_the_last_change() {
    let with_a = |n, content: &str| facts_with_file(n, "a", Some(content));
    let facts = vec![
        with_a(1, "A"),
        busy_facts(2),
        with_a(3, "B"),
        unchanged_facts(4, 9),
        with_a(5, "A"),
        with_a(6, "B"),
    ];
    assert_eq!(score_facts(facts.clone()), "0.2 file_thrash");
    let with = |next: IterationFacts| score_facts(facts.clone().into_iter().chain([next]));
    // No later change, so the signal remains.
    assert_eq!(with(unchanged_facts(7, 0)), "0.2 file_thrash");
    assert_eq!(with(busy_facts(7)), "0.0 ");
}

#[test]
fn a_half_and_two_tenths_are_a_gutter() {
    let both = |n: u32| IterationFacts {
        files: vec![file_state(
            "a",
            Some(if n.is_multiple_of(2) { "A" } else { "B" }),
        )],
        ..failing_facts(n, "a")
    };
    let measured = measure_facts((1..=4).map(both));
    assert_eq!(measured.score, LoopScore::GUTTER);
    assert!((measured.score.value() - 0.7).abs() < f64::EPSILON);
    assert!(measured.score.is_gutter());
}

#[test]
fn five_idle_iterations_are_a_gutter() {
    let nothing = |n| IterationFacts {
        iteration: n,
        ..IterationFacts::default()
    };
    assert_eq!(score_facts((1..=3).map(nothing)), "0.3 stagnation");
    assert_eq!(score_facts((1..=4).map(nothing)), "0.3 stagnation");
    assert_eq!(score_facts((1..=5).map(nothing)), "0.7 stagnation idle");
    let reading = |n| unchanged_facts(n, 0);
    assert_eq!(score_facts((1..=4).map(reading)), "0.3 stagnation");
    assert_eq!(score_facts((1..=5).map(reading)), "0.7 stagnation reading");
    let ticking = |n: u32| IterationFacts {
        boxes_ticked: usize::from(n == 5),
        ..unchanged_facts(n, 0)
    };
    assert_eq!(score_facts((1..=5).map(ticking)), "0.3 stagnation");
}

#[test]
fn fewer_failing_tests_lower_the_score() {
    for (tests, score, progress) in [
        (
            vec![(1, 5), (2, 4), (3, 3)],
            "0.0 repeated_failure tests_closer",
            true,
        ),
        (vec![(1, 5), (1, 5), (1, 5)], "0.5 repeated_failure", false),
        (vec![(3, 3), (2, 4), (1, 5)], "0.5 repeated_failure", false),
        // Returning to an earlier result is not an improvement.
        (
            vec![(1, 5), (2, 4), (1, 5), (2, 4)],
            "0.5 repeated_failure",
            false,
        ),
        // Removed tests do not fail, so the result is not an improvement.
        (vec![(1, 5), (1, 5), (1, 2)], "0.5 repeated_failure", false),
    ] {
        let facts = numbered(&tests, |n, (passed, failed)| {
            tested_facts(n, *passed, *failed)
        });
        assert_eq!(score_facts(facts.clone()), score, "{tests:?}");
        assert_eq!(measure_facts(facts).progress, progress, "{tests:?}");
    }
}

#[test]
fn tests_that_turn_green_are_progress_without_a_count() {
    let of = |n, green| IterationFacts {
        tests: Some(TestFacts { green, count: None }),
        ..busy_facts(n)
    };
    assert!(measure_facts([of(1, false), of(2, true)]).progress);
    assert!(!measure_facts([of(1, true), of(2, false), of(3, true)]).progress);
    assert!(!measure_facts([of(1, true)]).progress);
}

#[test]
fn a_new_box_is_progress() {
    let of = |n, boxes_ticked| IterationFacts {
        boxes_ticked,
        ..busy_facts(n)
    };
    assert!(measure_facts([of(1, 0), of(2, 1)]).progress);
    assert!(!measure_facts([of(1, 1), of(2, 1)]).progress);
}

#[test]
fn every_signal_reports_its_evidence() {
    let facts = |n: u32| IterationFacts {
        files: vec![file_state(
            "a.rs",
            Some(if n.is_multiple_of(2) { "A" } else { "B" }),
        )],
        changed_lines: 1,
        ..failing_facts(n, "a")
    };
    let evidence: Vec<String> = measure_facts((3..=6).map(facts))
        .signals
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        evidence,
        [
            "`npm test` failed 4 times in the same way (exit 1) in iterations 3, 4, 5, 6",
            "fewer than 3 lines changed in each of iterations 3, 4, 5, 6 (lines: 1, 1, 1, 1)",
            "alternating between two versions: `a.rs` (iterations 3, 4, 5, 6)",
        ]
    );
}

#[test]
fn stored_facts_are_bounded() {
    let mut window = IterationWindow::default();
    for n in 1..=1000 {
        window.push(failing_facts(n, "a"));
    }
    let kept: Vec<u32> = window.iter().map(|facts| facts.iteration).collect();
    assert_eq!(kept, (991..=1000).collect::<Vec<u32>>());
    let mut failures = Vec::new();
    for n in 0..100_u32 {
        let signature = Digest::compute(&n.to_be_bytes());
        IterationFacts::add_failure(
            &mut failures,
            FailureFacts::new(signature, &"x".repeat(5000), "exit 1"),
        );
    }
    assert_eq!(failures.len(), IterationFacts::MAX_FAILURES);
    assert_eq!(failures[0].command.chars().count(), 201);
}
