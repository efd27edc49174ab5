//! Tests for listing commands and for comparing listings with runs.

use super::*;

const NEXTEST_LIST: &str = r#"{"test-count":3,"rust-suites":{"x::it":{"testcases":{"a":{"filter-match":{"status":"matches"}},"b":{"filter-match":{"status":"matches"}},"c":{"ignored":true,"filter-match":{"status":"mismatch","reason":"ignored"}}}},"x":{"testcases":{}}}}"#;

fn tests(passed: u64, skipped: u64) -> TestCount {
    TestCount {
        passed,
        skipped,
        ..TestCount::default()
    }
}

#[test]
fn a_runner_is_recognised_as_the_last_command() {
    for (line, listing) in [
        ("pytest -q", Some("pytest -q --collect-only")),
        (
            "cd a && python3 -m pytest tests",
            Some("cd a && python3 -m pytest tests --collect-only"),
        ),
        (
            "pytest -k \"a or b\"",
            Some("pytest -k \"a or b\" --collect-only"),
        ),
        ("cargo test --locked", Some("cargo test --locked -- --list")),
        (
            "cargo test -- --nocapture",
            Some("cargo test -- --nocapture --list"),
        ),
        (
            "cargo nextest run -p x",
            Some("cargo nextest list -p x --message-format json"),
        ),
        ("cargo nextest run --no-fail-fast", None),
        (
            "npm ci && npx vitest run",
            Some("npm ci && npx vitest list"),
        ),
        ("go test ./...", Some("go test ./... -list .")),
        ("go test -run TestA ./...", None),
        ("go test --count=2 ./...", None),
        ("go test -skip=Slow ./...", None),
        ("npx vitest run --shard=1/2", None),
        ("pytest --reruns 2", None),
        ("node --test", None),
        ("(pytest)", None),
    ] {
        let found = TestListing::parse(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(found.command.as_deref(), listing, "{line}");
    }
    for line in [
        "pytest | tee log",
        "pytest > log",
        "pytest; true",
        "make test",
        "echo pytest",
        "cargo test --no-run",
        "cargo nextest run --no-run",
        "pytest --collect-only -q",
        "go test -c ./x",
        "",
    ] {
        assert_eq!(TestListing::parse(line), None, "{line}");
    }
}

#[test]
fn listings_are_counted() {
    for (line, output, count) in [
        (
            "pytest",
            "tests/a.py::x\n\n3 tests collected in 0.01s\n",
            Some(3),
        ),
        (
            "pytest",
            "===== 2/5 tests collected (3 deselected) in 0.01s =====\n",
            Some(2),
        ),
        ("pytest", "tests/a.py: 3\ntests/b.py: 4\n", Some(7)),
        ("pytest", "no tests collected in 0.01s\n", Some(0)),
        ("pytest", "", None),
        (
            "cargo test",
            "a::b: test\nc: test\nd: benchmark\n\n2 tests, 1 benchmark\n",
            Some(2),
        ),
        ("cargo nextest run", NEXTEST_LIST, Some(2)),
        ("go test ./...", "TestA\nTestB\nok  \tx\t0.1s\n", Some(2)),
        ("python -m unittest", "noise\nlisted 12 tests\n", Some(12)),
        (
            "npx vitest run",
            "a.test.ts > adds\na.test.ts > b > c\n",
            Some(2),
        ),
    ] {
        assert_eq!(
            TestListing::parse(line).unwrap().count(output),
            count,
            "{line}"
        );
    }
}

#[test]
fn cargo_progress_is_not_a_nextest_listing() {
    let nextest = TestListing::parse("cargo nextest run").unwrap();
    let progress = "    Finished `test` profile in 0.1s\n    Blocking waiting for a lock\n";
    assert_eq!(nextest.count(progress), None);
    assert_eq!(nextest.count(&format!("{progress}{NEXTEST_LIST}")), Some(2));
    assert_eq!(
        nextest.compare(Some(2), Some(tests(2, 1))),
        CountCheck::Confirmed
    );
}

#[test]
fn a_fully_skipped_module_is_not_listed() {
    let pytest = TestListing::parse("pytest").unwrap();
    for (listed, passed, skipped) in [(10, 10, 1), (10, 9, 1), (3, 2, 1)] {
        assert_eq!(
            pytest.compare(Some(listed), Some(tests(passed, skipped))),
            CountCheck::Confirmed
        );
    }
}

#[test]
fn differences_between_run_and_listing_are_classified() {
    let pytest = TestListing::parse("pytest").unwrap();
    let why = |run| format!("pytest lists 41 tests for `pytest`, the run reports {run}");
    assert_eq!(
        pytest.compare(Some(41), Some(tests(3, 0))),
        CountCheck::Short(why(3))
    );
    assert_eq!(
        pytest.compare(Some(41), Some(tests(42, 0))),
        CountCheck::Exceeded(why(42))
    );
    assert_eq!(
        pytest.compare(Some(41), None),
        CountCheck::MissingSummary(
            "`pytest` exited 0 without the summary that pytest prints".into()
        )
    );
    let unconfirmed = [
        pytest.compare(None, Some(tests(3, 0))),
        TestListing::parse("pytest -qq")
            .unwrap()
            .compare(Some(3), None),
        TestListing::parse("go test ./...")
            .unwrap()
            .compare(Some(3), None),
    ];
    for check in unconfirmed {
        assert!(matches!(check, CountCheck::Unconfirmed(_)), "{check:?}");
    }
}
