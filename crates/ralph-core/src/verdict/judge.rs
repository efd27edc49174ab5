//! Turns the results of the checks into a verdict.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TestCount;
use crate::gutter::OutputProblems;
use crate::id::Digest;
use crate::ports::ExecStatus;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckResult {
    /// The origin of the check: a box's id, `test_command` or `verify_commands[1]`.
    pub name: String,
    pub command: String,
    pub ended: ExecStatus,
    pub duration_ms: u64,
    /// `None` if the output does not contain a test count.
    pub tests: Option<TestCount>,
    /// Signature of the failure, see [`signature`](crate::gutter::signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Digest>,
    /// The problems reported by a failed check.
    #[serde(default, skip_serializing_if = "OutputProblems::is_empty")]
    pub problems: OutputProblems,
}

impl CheckResult {
    /// Returns whether the check passed.
    pub fn is_green(&self) -> bool {
        self.failure_reason().is_none()
    }

    /// Returns why the check failed, if it did.
    ///
    /// Failures that the runner reports outweigh an exit code of 0: a script, a pipe or a plugin
    /// can swallow the exit code.
    fn failure_reason(&self) -> Option<String> {
        let Self { command, ended, .. } = self;
        let failed = self.tests.and_then(failures);
        if !ended.is_success() {
            let failed = failed.map_or_else(String::new, |failed| format!(", {failed}"));
            return Some(format!("`{command}`: {ended}{failed}"));
        }
        if let Some(failed) = failed {
            return Some(format!("`{command}` exited 0 but reports that {failed}"));
        }
        let tests = self.tests.filter(|tests| tests.passed == 0)?;
        let left = match (tests.skipped, tests.xfailed) {
            (0, 0) => return Some(format!("`{command}` exited 0 but ran no tests")),
            (skipped, 0) => {
                return Some(format!(
                    "`{command}` exited 0 but ran no tests ({skipped} skipped)"
                ));
            }
            (0, xfailed) => format!("{xfailed} failed as expected"),
            (skipped, xfailed) => format!("{skipped} skipped, {xfailed} failed as expected"),
        };
        Some(format!("`{command}` exited 0 but no test passed ({left})"))
    }
}

/// Describes the failures; some runners report only these, not the number of tests.
fn failures(tests: TestCount) -> Option<String> {
    match (tests.failed, tests.ran()) {
        (0, _) => None,
        (1, 1) => Some("1 test failed".to_owned()),
        (failed, ran) if failed == ran => Some(format!("{failed} tests failed")),
        (failed, ran) => Some(format!("{failed} of {ran} tests failed")),
    }
}

/// The combined result of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// All checks passed.
    Green,
    /// At least one check failed.
    Red { reasons: Vec<String> },
}

/// Decides the verdict. Green requires at least one check, exit code 0 for each of them and, if
/// tests can be counted, no failed and at least one passed test.
pub fn judge(checks: &[CheckResult]) -> Verdict {
    if checks.is_empty() {
        return Verdict::Red {
            reasons: vec!["there are no checks".to_owned()],
        };
    }
    let reasons: Vec<String> = checks
        .iter()
        .filter_map(CheckResult::failure_reason)
        .collect();
    if reasons.is_empty() {
        Verdict::Green
    } else {
        Verdict::Red { reasons }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, ended: ExecStatus, tests: Option<[u64; 3]>) -> CheckResult {
        CheckResult {
            name: "test_command".to_owned(),
            command: command.to_owned(),
            ended,
            duration_ms: 12,
            tests: tests.map(|[passed, failed, skipped]| TestCount {
                passed,
                failed,
                skipped,
                xfailed: 0,
            }),
            failure: None,
            problems: OutputProblems::default(),
        }
    }

    fn red(reason: &str) -> Verdict {
        Verdict::Red {
            reasons: vec![reason.to_owned()],
        }
    }

    #[test]
    fn green_needs_every_check() {
        let done = ExecStatus::Exited(0);
        for (check, verdict) in [
            (check("make", done, None), Verdict::Green),
            (check("npm test", done, Some([3, 0, 1])), Verdict::Green),
            (
                check("npm test", done, Some([0, 0, 7])),
                red("`npm test` exited 0 but ran no tests (7 skipped)"),
            ),
            (
                check("npm test", done, Some([0, 0, 0])),
                red("`npm test` exited 0 but ran no tests"),
            ),
            (
                check("npm test", done, Some([1, 2, 0])),
                red("`npm test` exited 0 but reports that 2 of 3 tests failed"),
            ),
            (
                check("go test ./...", done, Some([0, 1, 0])),
                red("`go test ./...` exited 0 but reports that 1 test failed"),
            ),
            (
                check("npm test", ExecStatus::Exited(1), Some([3, 2, 0])),
                red("`npm test`: exit 1, 2 of 5 tests failed"),
            ),
            (
                check("npm test", ExecStatus::Exited(1), Some([0, 0, 0])),
                red("`npm test`: exit 1"),
            ),
            (
                check("make", ExecStatus::TimedOut, None),
                red("`make`: timed out (124)"),
            ),
            (
                check("make", ExecStatus::OutOfMemory, Some([3, 0, 0])),
                red("`make`: killed: out of memory"),
            ),
            (
                check("make", ExecStatus::OutputLimit, None),
                red("`make`: killed: printed too much"),
            ),
            (
                check("make", ExecStatus::Signalled(11), None),
                red("`make`: killed by signal 11"),
            ),
        ] {
            assert_eq!(judge(&[check]), verdict);
        }
    }

    #[test]
    fn failures_that_a_runner_reports_outweigh_its_exit_code() {
        for output in [
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s\n",
            "     Summary [   0.032s] 3 tests run: 1 passed, 2 failed, 0 skipped\n",
            "=========== 2 failed, 1 passed in 0.12s ===========\n",
            "Ran 3 tests in 0.001s\n\nFAILED (failures=2)\n",
            "Tests:       2 failed, 1 passed, 3 total\n",
            "      Tests  2 failed | 1 passed (3)\n",
            "  1 passing (12ms)\n  2 failing\n",
            "ℹ tests 3\nℹ pass 1\nℹ fail 2\n",
            "=== RUN   A\n--- PASS: A (0.00s)\n--- FAIL: B (0.00s)\n--- FAIL: C (0.00s)\nFAIL\nFAIL\tx.org/x\t0.003s\n",
            "1..3\nok 1 - a\nnot ok 2 - b\nnot ok 3 - c\n",
            "Failed 2/3 subtests\nFiles=1, Tests=3,  0 wallclock secs\nResult: FAIL\n",
            "3 examples, 2 failures\n",
            "FAILURES!\nTests: 3, Assertions: 5, Failures: 2.\n",
            "[ERROR] Tests run: 3, Failures: 1, Errors: 1, Skipped: 0\n",
            "[         1 tests successful      ]\n[         2 tests failed          ]\n",
            "33% tests passed, 2 tests failed out of 3\n",
            "all: 1 passed, 2 failed\n",
        ] {
            let check = CheckResult {
                tests: crate::verdict::count_tests(output),
                ..check("t", ExecStatus::Exited(0), None)
            };
            let reason = "`t` exited 0 but reports that 2 of 3 tests failed";
            assert_eq!(judge(&[check]), red(reason), "{output}");
        }
    }

    #[test]
    fn a_test_that_fails_as_expected_is_not_a_passed_one() {
        let xfailed = |passed, skipped| CheckResult {
            tests: Some(TestCount {
                passed,
                failed: 0,
                skipped,
                xfailed: 3,
            }),
            ..check("pytest", ExecStatus::Exited(0), None)
        };
        assert_eq!(judge(&[xfailed(1, 0)]), Verdict::Green);
        let reason = "`pytest` exited 0 but no test passed (3 failed as expected)";
        assert_eq!(judge(&[xfailed(0, 0)]), red(reason));
        let reason = "`pytest` exited 0 but no test passed (2 skipped, 3 failed as expected)";
        assert_eq!(judge(&[xfailed(0, 2)]), red(reason));
    }

    #[test]
    fn a_run_without_checks_is_red() {
        assert_eq!(judge(&[]), red("there are no checks"));
    }

    #[test]
    fn reports_every_reason() {
        let checks = [
            check("true", ExecStatus::Exited(0), None),
            check("a", ExecStatus::Exited(2), None),
            check("b", ExecStatus::Exited(0), Some([0, 0, 0])),
        ];
        let reasons = vec![
            "`a`: exit 2".to_owned(),
            "`b` exited 0 but ran no tests".to_owned(),
        ];
        assert_eq!(judge(&checks), Verdict::Red { reasons });
    }

    #[test]
    fn a_result_survives_serialization() {
        let result = check("a", ExecStatus::Exited(2), Some([1, 2, 3]));
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(
            text,
            r#"{"name":"test_command","command":"a","ended":{"exited":2},"duration_ms":12,"tests":{"passed":1,"failed":2,"skipped":3}}"#
        );
        assert_eq!(serde_json::from_str::<CheckResult>(&text).unwrap(), result);
    }
}
