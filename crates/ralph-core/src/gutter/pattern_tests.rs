//! Tests for problems in outputs, code changes in diffs, and the evidence of the derived signals.

use super::*;

fn found(stderr: &str, stdout: &str) -> Vec<String> {
    let problems = OutputProblems::find(stderr, stdout);
    let text = |problem: &OutputProblem| match problem.line {
        Some(line) => format!("{} @{line}", problem.text),
        None => problem.text.clone(),
    };
    problems.kept.iter().map(text).collect()
}

/// Outputs with their only problem.
const PROBLEMS: &[(&str, &str)] = &[
    (
        "FAILED tests/test_a.py::test_x[12] - assert 3 == 4",
        "test tests/test_a.py::test_x[12]",
    ),
    (
        "FAIL: test_sum (app.tests.Sum)",
        "test test_sum (app.tests.Sum)",
    ),
    ("test parse::empty ... FAILED", "test parse::empty"),
    (
        "        FAIL [   0.023s] core parse::empty",
        "test core parse::empty",
    ),
    (
        "--- FAIL: TestStore/case_2 (0.00s)",
        "test TestStore/case_2",
    ),
    ("  ✕ adds numbers (12 ms)", "test adds numbers"),
    (
        " FAIL  src/a.test.ts > sum > adds",
        "test src/a.test.ts > sum > adds",
    ),
    ("not ok 3 - parses dates", "test parses dates"),
    ("rspec ./spec/a_spec.rb:12 # adds", "test adds"),
    ("FooTest > adds() FAILED", "test FooTest > adds()"),
    ("[ERROR] FooTest.adds:12 expected", "test FooTest.adds"),
    ("[  FAILED  ] Suite.Case", "test Suite.Case"),
    (
        "src/a.ts(10,5): error TS2304: Cannot find name 'foo'.",
        "src/a.ts error TS2304: Cannot find name 'foo'. @10",
    ),
    (
        "./main.go:12:2: undefined: foo",
        "./main.go undefined: foo @12",
    ),
    (
        "a.c:7:3: error: 'x' undeclared (first use in this function)",
        "a.c error: 'x' undeclared (first use in this function) @7",
    ),
    (
        "error[E0308]: mismatched types\n  --> src/a.rs:12:5",
        "src/a.rs error[E0308]: mismatched types @12",
    ),
    (
        "thread 'main' (77) panicked at src/a.rs:4:5:\nindex 7 of 3",
        "src/a.rs panicked: index # of # @4",
    ),
    (
        "/work/src/a.js\n  12:5  error  'x' is not defined  no-undef",
        "/work/src/a.js 'x' is not defined no-undef @12",
    ),
    (
        "ModuleNotFoundError: No module named 'yaml'",
        "ModuleNotFoundError: No module named 'yaml'",
    ),
    ("sh: 1: protoc: not found", "sh: #: protoc: not found"),
];

#[test]
fn problems_of_many_tools_are_found() {
    for (output, expected) in PROBLEMS {
        assert_eq!(found(output, ""), [*expected], "{output}");
        assert_eq!(found("", output), [*expected], "{output}");
    }
}

#[test]
fn generic_messages_and_warnings_are_not_problems() {
    for output in [
        "Error: build failed",
        "npm ERR! Test failed.  See above for more details.",
        "AssertionError: assert 3 == 4",
        "src/a.c:3:1: warning: unused variable 'x'",
        "error: could not compile `core` (lib) due to 1 previous error",
        "make: *** [Makefile:3: all] Error 2",
        "12 passed in 0.1s",
    ] {
        assert_eq!(found(output, ""), Vec::<String>::new(), "{output}");
    }
}

#[test]
fn problems_are_bounded_and_the_same_ones_are_kept() {
    let output = |from: u32| -> String {
        let lines: Vec<String> = (from..1000)
            .map(|n| format!("a{n}.c:{n}:1: error: no\n"))
            .collect();
        lines.concat()
    };
    let (all, fewer) = (
        OutputProblems::find("", &output(0)),
        OutputProblems::find("", &output(500)),
    );
    assert_eq!(all.kept.len(), OutputProblems::MAX);
    assert_eq!(all.count, 400);
    assert_eq!(OutputProblems::find("", &output(0)), all);
    assert_eq!(fewer.kept.len(), OutputProblems::MAX);
}

/// A diff of one file.
fn diff(path: &str, removed: &[&str], added: &[&str]) -> Vec<u8> {
    let mut text =
        format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n");
    for (sign, lines) in [('-', removed), ('+', added)] {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            text.push('\n');
        }
    }
    text.into_bytes()
}

fn window_with_code(code: CodeChange, committed: bool) -> IterationWindow {
    let mut window = IterationWindow::default();
    window.push(IterationFacts {
        iteration: 1,
        committed: Some(committed),
        code: Some(code),
        ..IterationFacts::default()
    });
    window
}

#[test]
fn replaced_lines_are_counted_whether_they_were_committed_or_not() {
    let first = CodeChange::from_diff(
        &diff("a.py", &[], &["one = 1", "two = 2", "}"]),
        &IterationWindow::default(),
    );
    assert_eq!((first.written.len(), first.gone, first.of), (2, 0, 0));
    // Without a commit, the next diff starts at the same commit.
    let open = window_with_code(first.clone(), false);
    let kept = CodeChange::from_diff(
        &diff("a.py", &[], &["one = 1", "two = 2", "three = 3"]),
        &open,
    );
    assert_eq!((kept.gone, kept.of), (0, 2));
    let replaced = CodeChange::from_diff(&diff("a.py", &[], &["one = 11", "two = 22"]), &open);
    assert_eq!((replaced.gone, replaced.of), (2, 2));
    assert!(replaced.is_rewriting());
    // After a commit, the next diff removes the lines.
    let closed = window_with_code(first, true);
    let kept = CodeChange::from_diff(&diff("a.py", &[], &["three = 3"]), &closed);
    assert!(!kept.is_rewriting());
    let replaced = CodeChange::from_diff(&diff("a.py", &["one = 1"], &["one = 11"]), &closed);
    assert_eq!((replaced.gone, replaced.of), (1, 2));
}

#[test]
fn formatting_is_distinguished_from_substance() {
    let none = IterationWindow::default();
    let quotes = CodeChange::from_diff(&diff("a.js", &["f('x')"], &["f( \"x\" );"]), &none);
    assert!(quotes.formatting_only && quotes.substance.is_empty());
    let value = CodeChange::from_diff(&diff("a.js", &["f('x')"], &["f('y')"]), &none);
    assert!(!value.formatting_only && !value.substance.is_empty());
    // The same change in another format, on top of the same commit.
    let again = CodeChange::from_diff(
        &diff("a.js", &["f('x')"], &["f( 'y' )"]),
        &window_with_code(value, false),
    );
    assert!(again.formatting_only);
    let generated = CodeChange::from_diff(&diff("package-lock.json", &["a: 1"], &["a: 2"]), &none);
    assert!(!generated.formatting_only && generated.written.is_empty());
}

#[test]
fn every_pattern_reports_its_evidence() {
    for (signal, expected) in [
        (
            GutterSignal::SameProblem {
                problem: "test a".into(),
                iterations: vec![1, 2, 3, 4],
            },
            "the same problem 4 times: `test a` (iterations 1, 2, 3, 4)",
        ),
        (
            GutterSignal::GrowingDiff {
                iterations: vec![1, 2],
                lines: vec![5, 9],
            },
            "the uncommitted diff grew in iterations 1, 2 (lines: 5, 9) while failures continued",
        ),
        (
            GutterSignal::Cycle {
                period: 3,
                files: vec!["a".into(), "b".into()],
                iterations: vec![1, 2],
            },
            "cycling through 3 states: `a`, `b` (iterations 1, 2)",
        ),
        (
            GutterSignal::Reformatting {
                file: "a.js".into(),
                iterations: vec![1, 2, 3],
            },
            "only the formatting changed in iterations 1, 2, 3, for example in `a.js`",
        ),
        (
            GutterSignal::NoProgress {
                iterations: vec![1, 2],
            },
            "no new box, no new commit and no better test result in iterations 1, 2",
        ),
        (
            GutterSignal::RecentProgress { iteration: 4 },
            "iteration 4 ticked a box or improved the tests",
        ),
    ] {
        assert_eq!(signal.to_string(), expected);
    }
}

#[test]
fn facts_of_older_versions_do_not_report_missing_progress() {
    let old = r#"{"iteration":1,"commands":1,"changed_lines":9,"binary_files":0,"boxes_ticked":0,
        "failures":[{"signature":"00","command":"make","ended":"exit 2"}]}"#;
    let facts: IterationFacts = serde_json::from_str(old).unwrap();
    let mut window = IterationWindow::default();
    for iteration in 1..=10 {
        window.push(IterationFacts {
            iteration,
            ..facts.clone()
        });
    }
    let names: Vec<&str> = measure(&window, GutterSettings::default())
        .signals
        .iter()
        .map(GutterSignal::name)
        .collect();
    assert_eq!(names, ["repeated_failure"]);
}
