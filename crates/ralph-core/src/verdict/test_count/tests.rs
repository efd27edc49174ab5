//! Output of the runners and the expected counts.

use super::*;

/// Passed, failed, skipped. Expected failures are tested separately.
const RECOGNISED: [(&str, &str, [u64; 3]); 50] = [
    (
        "cargo",
        "running 3 tests\ntest a ... ok\n\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\n   Doc-tests x\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s\n",
        [4, 2, 1],
    ),
    (
        "cargo without tests",
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 35 filtered out; finished in 0.00s\n",
        [0, 0, 0],
    ),
    (
        "nextest",
        "        PASS [   0.005s] (1/8) core a\n     Summary [   0.032s] 8 tests run: 8 passed (1 slow), 35 skipped\n",
        [8, 0, 35],
    ),
    (
        "nextest with failures and captured output",
        "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 34 filtered out\n     Summary [   1.781s] 20/25 tests run: 13 passed, 5 failed, 1 timed out, 1 exec failed, 15 skipped\n",
        [13, 7, 15],
    ),
    (
        "one nextest test",
        "     Summary [   0.1s] 1 test run: 1 passed, 0 skipped\n",
        [1, 0, 0],
    ),
    (
        "pytest",
        "collected 6 items\n\n=========== 1 failed, 3 passed, 2 skipped, 1 warning in 0.12s ===========\n",
        [3, 1, 2],
    ),
    ("quiet pytest", "...\n3 passed in 0.01s\n", [3, 0, 0]),
    (
        "long pytest",
        "==== 2 passed, 1 xpassed, 1 error in 75.30s (0:01:15) ====\n",
        [3, 1, 0],
    ),
    (
        "pytest without tests",
        "============= no tests ran in 0.01s =============\n",
        [0, 0, 0],
    ),
    (
        "pytest that deselected all",
        "============= 3 deselected in 0.01s =============\n",
        [0, 0, 0],
    ),
    (
        "unittest",
        "...\n----------\nRan 3 tests in 0.001s\n\nOK\n",
        [3, 0, 0],
    ),
    (
        "unittest with failures",
        "Ran 7 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=2, unexpected successes=1)\n",
        [2, 3, 2],
    ),
    (
        "unittest without tests",
        "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
        [0, 0, 0],
    ),
    (
        "Jest",
        "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 2 skipped, 1 todo, 3 passed, 7 total\nSnapshots:   0 total\n",
        [3, 1, 3],
    ),
    (
        "Jest where all fail",
        "Tests:       2 failed, 2 total\n",
        [0, 2, 0],
    ),
    (
        "Jest without tests",
        "No tests found, exiting with code 0\n",
        [0, 0, 0],
    ),
    (
        "Vitest in colours",
        "\u{1b}[2m Test Files \u{1b}[22m \u{1b}[1m\u{1b}[32m1 passed\u{1b}[39m\u{1b}[22m\u{1b}[90m (1)\u{1b}[39m\n\u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m\u{1b}[31m1 failed\u{1b}[39m\u{1b}[22m\u{1b}[2m | \u{1b}[22m\u{1b}[1m\u{1b}[32m2 passed\u{1b}[39m\u{1b}[22m | 1 skipped\u{1b}[90m (4)\u{1b}[39m\n",
        [2, 1, 1],
    ),
    (
        "Vitest where all fail",
        " Test Files  1 failed (1)\n      Tests  2 failed (2)\n",
        [0, 2, 0],
    ),
    (
        "Vitest without tests",
        " Test Files  1 passed (1)\n      Tests  no tests\n",
        [0, 0, 0],
    ),
    (
        "Vitest without files",
        "No test files found, exiting with code 0\n",
        [0, 0, 0],
    ),
    (
        "Mocha",
        "  thing\n    ✔ works\n\n  3 passing (12ms)\n  1 pending\n  2 failing\n\n  1) thing\n",
        [3, 2, 1],
    ),
    ("Mocha without tests", "\n  0 passing (1ms)\n", [0, 0, 0]),
    (
        "node, TAP reporter",
        "TAP version 13\n# Subtest: a\nok 1 - a\n1..1\n# tests 4\n# suites 0\n# pass 1\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n# duration_ms 5\n",
        [1, 2, 1],
    ),
    (
        "node, spec reporter",
        "✔ a (0.5ms)\nℹ tests 3\nℹ suites 0\nℹ pass 3\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n",
        [3, 0, 0],
    ),
    (
        "node without tests",
        "ℹ tests 0\nℹ pass 0\nℹ fail 0\n",
        [0, 0, 0],
    ),
    (
        "go -v",
        "=== RUN   TestA\n=== RUN   TestA/sub\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\n=== RUN   TestC\n--- SKIP: TestC (0.00s)\nFAIL\nFAIL\texample.com/x\t0.003s\n",
        [1, 1, 1],
    ),
    (
        "go without tests",
        "?   \texample.com/x\t[no test files]\nok  \texample.com/y\t0.002s [no tests to run]\n",
        [0, 0, 0],
    ),
    (
        "go without -v",
        "--- FAIL: TestB (0.00s)\nFAIL\nFAIL\texample.com/x\t0.003s\nok  \texample.com/y\t0.002s\n",
        [0, 1, 0],
    ),
    (
        "go that does not compile",
        "FAIL\texample.com/x [build failed]\nok  \texample.com/y\t0.002s\n",
        [0, 1, 0],
    ),
    (
        "TAP",
        "1..5\nok 1 - a\nnot ok 2 - b\n    ok 1 - inner\nok 3 - c # SKIP no network\nok 4 - d # TODO later\nok 5\n",
        [3, 1, 1],
    ),
    (
        "TAP without tests",
        "TAP version 13\n1..0 # SKIP nothing\n",
        [0, 0, 0],
    ),
    (
        "prove",
        "t/a.t .. ok\nt/b.t .. \nFailed 1/2 subtests \nFiles=2, Tests=5,  0 wallclock secs ( 0.02 usr)\nResult: FAIL\n",
        [4, 1, 0],
    ),
    (
        "prove -v",
        "t/a.t .. \nok 1 - a\n1..1\nok\nAll tests successful.\nFiles=1, Tests=1,  0 wallclock secs\nResult: PASS\n",
        [1, 0, 0],
    ),
    (
        "RSpec",
        "Finished in 0.01 seconds\n4 examples, 1 failure, 1 pending\n",
        [2, 1, 1],
    ),
    ("RSpec without tests", "0 examples, 0 failures\n", [0, 0, 0]),
    (
        "Minitest",
        "5 runs, 9 assertions, 1 failures, 1 errors, 1 skips\n",
        [2, 2, 1],
    ),
    (
        "test-unit",
        "4 tests, 9 assertions, 1 failures, 0 errors, 1 pendings, 0 omissions, 0 notifications\n",
        [2, 1, 1],
    ),
    ("bats", " ✓ a\n\n3 tests, 1 failure, 1 skipped\n", [1, 1, 1]),
    (
        "ExUnit",
        "Finished in 0.02 seconds\n1 test, 0 failures\n",
        [1, 0, 0],
    ),
    ("PHPUnit", "OK (3 tests, 5 assertions)\n", [3, 0, 0]),
    (
        "PHPUnit with failures",
        "FAILURES!\nTests: 6, Assertions: 5, Errors: 1, Failures: 1, Skipped: 1, Incomplete: 1.\n",
        [2, 2, 2],
    ),
    ("PHPUnit without tests", "No tests executed!\n", [0, 0, 0]),
    (
        "JUnit 4",
        "Time: 0.01\n\nTests run: 3,  Failures: 1\n",
        [2, 1, 0],
    ),
    (
        "Surefire",
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in com.example.ATest\n[INFO] Results:\n[INFO] \n[ERROR] Tests run: 6, Failures: 1, Errors: 1, Skipped: 1\n",
        [3, 2, 1],
    ),
    (
        "JUnit console",
        "[         3 containers found      ]\n[         6 tests found           ]\n[         1 tests skipped         ]\n[         5 tests started         ]\n[         0 tests aborted         ]\n[         4 tests successful      ]\n[         1 tests failed          ]\n",
        [4, 1, 1],
    ),
    (
        "CTest",
        "67% tests passed, 1 tests failed out of 3\n\nTotal Test time (real) =   0.01 sec\n",
        [2, 1, 0],
    ),
    ("CTest without tests", "No tests were found!!!\n", [0, 0, 0]),
    (
        "plain",
        "all suites: 12 passed, 2 failed, 1 skipped\r\n",
        [12, 2, 1],
    ),
    (
        "plain, twice",
        "unit: 3 passed, 0 failed\ntotal: 5 passed, 0 failed\n",
        [5, 0, 0],
    ),
    ("plain bars", "ok | 3 passed | 0 failed (12ms)\n", [3, 0, 0]),
];

#[test]
fn recognises_summary_lines() {
    for (name, output, [passed, failed, skipped]) in RECOGNISED {
        let expected = TestCount {
            passed,
            failed,
            skipped,
            xfailed: 0,
        };
        assert_eq!(count_tests(output), Some(expected), "{name}");
    }
}

#[test]
fn expected_failures_are_counted_separately() {
    for (output, expected) in [
        (
            "==== 2 passed, 3 xfailed, 1 xpassed in 75.30s (0:01:15) ====\n",
            "3 passed, 3 failed as expected",
        ),
        (
            "Ran 7 tests in 0.001s\n\nFAILED (failures=1, skipped=2, expected failures=1)\n",
            "3 passed, 1 failed, 2 skipped, 1 failed as expected",
        ),
        (
            "1..2\nok 1 - a\nnot ok 2 - b # TODO later\n",
            "1 passed, 1 failed as expected",
        ),
    ] {
        let count = count_tests(output).unwrap();
        assert_eq!(count.to_string(), expected, "{output}");
    }
}

#[test]
fn zero_expected_failures_are_not_serialized() {
    let old = r#"{"passed":1,"failed":2,"skipped":3}"#;
    let count: TestCount = serde_json::from_str(old).unwrap();
    assert_eq!(count.xfailed, 0);
    assert_eq!(serde_json::to_string(&count).unwrap(), old);
}

#[test]
fn several_runners_are_summed() {
    let output = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\nTests:       3 passed, 3 total\nRan 2 tests in 0.001s\n\nOK\n";
    let expected = TestCount {
        passed: 5,
        failed: 0,
        skipped: 0,
        xfailed: 0,
    };
    assert_eq!(count_tests(output), Some(expected));
}

#[test]
fn ignores_overwritten_lines() {
    let output = "1 passed, 0 failed\r2 passed, 0 failed\r3 passed, 0 failed\r\n";
    assert_eq!(count_tests(output).map(TestCount::ran), Some(3));
}

#[test]
fn ignores_similar_prose() {
    for output in [
        "",
        "all good\n",
        "ok\n",
        "ok  \texample.com/x\t0.003s\n",
        "ok  \texample.com/x\t0.003s\n?   \texample.com/y\t[no test files]\n",
        "ok  \texample.com/x\t(cached)\n",
        "FAIL\nFAIL\tto reach the host\n",
        "1..10\nnothing else\n",
        "ok 1 - a line of prose\n",
        "The 3 tests passed in review; 2 people failed to attend.\n",
        "3 files changed, 10 insertions(+)\n",
        "Tests: see docs/tests.md\n",
        "running 3 tests\n",
        "Ran 3 migrations in 0.1s\n",
        "Summary: 3 warnings\n",
        "# pass the salt\n",
        "  running tests  \n",
    ] {
        assert_eq!(count_tests(output), None, "{output:?}");
    }
}

#[test]
fn absurd_numbers_do_not_overflow() {
    let huge = "Tests:  99999999999999999999999 failed, 99999999999999999999999 passed, 1 total\n"
        .repeat(2);
    let expected = TestCount {
        passed: u64::MAX,
        failed: u64::MAX,
        skipped: 0,
        xfailed: 0,
    };
    assert_eq!(count_tests(&huge), Some(expected));
    assert_eq!(expected.ran(), u64::MAX);
}
