//! The fixtures: what each pattern scores, exactly.

use super::*;
use crate::id::Digest;
use crate::verdict::TestCount;

/// An iteration in which a command ran and enough lines changed.
fn busy(iteration: u32) -> Facts {
    Facts {
        iteration,
        commands: 1,
        changed_lines: 10,
        files: vec![mark("busy.rs", Some(&format!("content {iteration}")))],
        ..Facts::default()
    }
}

fn mark(path: &str, after: Option<&str>) -> FileMark {
    FileMark {
        path: path.into(),
        after: after.map(str::to_owned),
    }
}

fn failing(iteration: u32, stderr: &str) -> Facts {
    let signature = signature("npm test", 1, stderr, "");
    Facts {
        failures: vec![Failure::new(signature, "npm test", "exit 1")],
        ..busy(iteration)
    }
}

fn still(iteration: u32, changed_lines: u64) -> Facts {
    Facts {
        changed_lines,
        files: Vec::new(),
        ..busy(iteration)
    }
}

/// An iteration that leaves a file with this content; none is a file that is gone.
fn leaving(iteration: u32, path: &str, after: Option<&str>) -> Facts {
    Facts {
        files: vec![mark(path, after)],
        ..busy(iteration)
    }
}

fn tested(iteration: u32, passed: u64, failed: u64) -> Facts {
    Facts {
        tests: Some(TestFacts {
            green: failed == 0,
            count: Some(TestCount {
                xfailed: 0,
                passed,
                failed,
                skipped: 0,
            }),
        }),
        ..failing(iteration, "npm ERR! Test failed")
    }
}

fn window(facts: impl IntoIterator<Item = Facts>) -> Window {
    let mut window = Window::default();
    facts.into_iter().for_each(|facts| window.push(facts));
    window
}

fn measured(facts: impl IntoIterator<Item = Facts>) -> Measured {
    measure(&window(facts), Settings::default())
}

/// Returns the score with the names of its signals.
fn scored(facts: impl IntoIterator<Item = Facts>) -> String {
    let measured = measured(facts);
    let names: Vec<&str> = measured.signals.iter().map(Signal::name).collect();
    format!("{} {}", measured.score, names.join(" "))
}

fn numbered<T>(items: &[T], make: impl Fn(u32, &T) -> Facts) -> Vec<Facts> {
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
        // Three times, but not in the last five iterations.
        (vec!["a", "a", "b", "c", "d", "a"], "0.0 "),
        (
            vec!["at 10:00:01", "at 10:00:02", "at 10:00:03"],
            "0.5 repeated_failure",
        ),
    ] {
        assert_eq!(
            scored(numbered(&errors, |n, e| failing(n, e))),
            score,
            "{errors:?}"
        );
    }
}

#[test]
fn a_failure_counts_once_per_iteration() {
    let twice = |n| {
        let mut facts = failing(n, "a");
        facts.failures.push(facts.failures[0].clone());
        facts
    };
    assert_eq!(scored([twice(1), twice(2)]), "0.0 ");
}

#[test]
fn standing_still_scores_three_tenths() {
    for (lines, score) in [
        (vec![0, 0], "0.0 "),
        (vec![0, 0, 0], "0.3 stagnation"),
        (vec![2, 2, 2], "0.3 stagnation"),
        (vec![3, 3, 3], "0.0 "),
        (vec![0, 0, 3, 0], "0.0 "),
        (vec![9, 0, 1, 2, 0], "0.3 stagnation"),
    ] {
        assert_eq!(
            scored(numbered(&lines, |n, l| still(n, *l))),
            score,
            "{lines:?}"
        );
    }
    let image = |n| Facts {
        binary_files: 1,
        ..still(n, 0)
    };
    assert_eq!(scored([1, 2, 3].map(image)), "0.0 ");
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
        let facts = numbered(&states, |n, state| leaving(n, "a.rs", *state));
        assert_eq!(scored(facts), score, "{states:?}");
    }
}

#[test]
fn a_rename_there_and_back_is_a_flip_of_both_names() {
    let renamed = |n, from: &str, to: &str| Facts {
        files: vec![mark(from, None), mark(to, Some("same"))],
        ..busy(n)
    };
    let measured = measured([
        renamed(1, "a", "b"),
        renamed(2, "b", "a"),
        renamed(3, "a", "b"),
        renamed(4, "b", "a"),
    ]);
    let thrash = |path: &str| Thrash {
        path: path.into(),
        iterations: vec![1, 2, 3, 4],
    };
    assert_eq!(
        measured.signals,
        [Signal::FileThrash {
            files: vec![thrash("b"), thrash("a")]
        }]
    );
}

#[test]
fn a_flip_may_have_other_iterations_between_but_must_be_the_last_change() {
    let of_a = |n, content: &str| leaving(n, "a", Some(content));
    let facts = vec![
        of_a(1, "A"),
        busy(2),
        of_a(3, "B"),
        still(4, 9),
        of_a(5, "A"),
        of_a(6, "B"),
    ];
    assert_eq!(scored(facts.clone()), "0.2 file_thrash");
    let with = |next: Facts| scored(facts.clone().into_iter().chain([next]));
    // Nothing changed since: it still stands.
    assert_eq!(with(still(7, 0)), "0.2 file_thrash");
    assert_eq!(with(busy(7)), "0.0 ");
}

#[test]
fn a_half_and_two_tenths_are_a_gutter() {
    let both = |n: u32| Facts {
        files: vec![mark("a", Some(if n.is_multiple_of(2) { "A" } else { "B" }))],
        ..failing(n, "a")
    };
    let measured = measured((1..=4).map(both));
    assert_eq!(measured.score, Score::GUTTER);
    assert!((measured.score.value() - 0.7).abs() < f64::EPSILON);
    assert!(measured.score.is_gutter());
}

#[test]
fn doing_nothing_at_all_is_a_gutter_after_five_iterations() {
    let nothing = |n| Facts {
        iteration: n,
        ..Facts::default()
    };
    assert_eq!(scored((1..=3).map(nothing)), "0.3 stagnation");
    assert_eq!(scored((1..=4).map(nothing)), "0.3 stagnation");
    assert_eq!(scored((1..=5).map(nothing)), "0.7 stagnation idle");
    let looking = |n| still(n, 0);
    assert_eq!(scored((1..=4).map(looking)), "0.3 stagnation");
    assert_eq!(scored((1..=5).map(looking)), "0.7 stagnation reading");
    let ticking = |n: u32| Facts {
        boxes_ticked: usize::from(n == 5),
        ..still(n, 0)
    };
    assert_eq!(scored((1..=5).map(ticking)), "0.3 stagnation");
}

#[test]
fn fewer_failing_tests_speak_against_a_circle() {
    for (tests, score, progress) in [
        (
            vec![(1, 5), (2, 4), (3, 3)],
            "0.0 repeated_failure tests_closer",
            true,
        ),
        (vec![(1, 5), (1, 5), (1, 5)], "0.5 repeated_failure", false),
        (vec![(3, 3), (2, 4), (1, 5)], "0.5 repeated_failure", false),
        // Back to what it was once is not closer.
        (
            vec![(1, 5), (2, 4), (1, 5), (2, 4)],
            "0.5 repeated_failure",
            false,
        ),
        // Tests that are gone do not fail.
        (vec![(1, 5), (1, 5), (1, 2)], "0.5 repeated_failure", false),
    ] {
        let facts = numbered(&tests, |n, (passed, failed)| tested(n, *passed, *failed));
        assert_eq!(scored(facts.clone()), score, "{tests:?}");
        assert_eq!(measured(facts).progress, progress, "{tests:?}");
    }
}

#[test]
fn tests_that_turn_green_are_progress_though_nobody_can_count_them() {
    let of = |n, green| Facts {
        tests: Some(TestFacts { green, count: None }),
        ..busy(n)
    };
    assert!(measured([of(1, false), of(2, true)]).progress);
    assert!(!measured([of(1, true), of(2, false), of(3, true)]).progress);
    assert!(!measured([of(1, true)]).progress);
}

#[test]
fn a_new_box_is_progress() {
    let of = |n, boxes_ticked| Facts {
        boxes_ticked,
        ..busy(n)
    };
    assert!(measured([of(1, 0), of(2, 1)]).progress);
    assert!(!measured([of(1, 1), of(2, 1)]).progress);
}

#[test]
fn every_signal_tells_its_evidence() {
    let facts = |n: u32| Facts {
        files: vec![mark(
            "a.rs",
            Some(if n.is_multiple_of(2) { "A" } else { "B" }),
        )],
        changed_lines: 1,
        ..failing(n, "a")
    };
    let told: Vec<String> = measured((3..=6).map(facts))
        .signals
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "`npm test` failed 4 times in the same way (exit 1) in iterations 3, 4, 5, 6",
            "fewer than 3 lines changed in each of iterations 3, 4, 5, 6 (lines: 1, 1, 1, 1)",
            "back and forth between two contents: `a.rs` (iterations 3, 4, 5, 6)",
        ]
    );
}

#[test]
fn nothing_grows_with_the_run() {
    let mut window = Window::default();
    for n in 1..=1000 {
        window.push(failing(n, "a"));
    }
    let kept: Vec<u32> = window.iter().map(|facts| facts.iteration).collect();
    assert_eq!(kept, (991..=1000).collect::<Vec<u32>>());
    let mut failures = Vec::new();
    for n in 0..100_u32 {
        let signature = Digest::of(&n.to_be_bytes());
        Facts::add_failure(
            &mut failures,
            Failure::new(signature, &"x".repeat(5000), "exit 1"),
        );
    }
    assert_eq!(failures.len(), Facts::MAX_FAILURES);
    assert_eq!(failures[0].command.chars().count(), 201);
}
