//! From the results of the checks to green or red.

use serde::{Deserialize, Serialize};

use super::TestCount;
use crate::id::Digest;
use crate::ports::Ended;

/// How one check went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Where the check comes from: a box's id, `test_command`, or `verify_commands[1]`.
    pub name: String,
    /// The command line.
    pub command: String,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub duration_ms: u64,
    /// The tests it ran, where its output tells.
    pub tests: Option<TestCount>,
    /// What its failure looks like, see [`signature`](crate::gutter::signature).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Digest>,
}

impl CheckResult {
    /// Returns why the check speaks against success, if it does.
    fn objection(&self) -> Option<String> {
        let Self { command, ended, .. } = self;
        match self.tests {
            _ if !ended.is_success() => {
                let failed = self.tests.map(failures).unwrap_or_default();
                Some(format!("`{command}`: {ended}{failed}"))
            }
            Some(tests) if tests.ran() == 0 => {
                Some(format!("`{command}` exited 0 but ran no test"))
            }
            Some(_) | None => None,
        }
    }
}

fn failures(tests: TestCount) -> String {
    if tests.failed == 0 {
        String::new()
    } else {
        format!(", {} of {} tests failed", tests.failed, tests.ran())
    }
}

/// What the checks say together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// All is well.
    Green,
    /// Something is not.
    Red {
        /// Everything that is not, a line each.
        reasons: Vec<String>,
    },
}

/// Decides: green needs at least one check, each ended with exit code 0, and none without a test
/// where tests can be counted.
pub fn judge(checks: &[CheckResult]) -> Verdict {
    if checks.is_empty() {
        return Verdict::Red {
            reasons: vec!["there is no check to pass".to_owned()],
        };
    }
    let reasons: Vec<String> = checks.iter().filter_map(CheckResult::objection).collect();
    if reasons.is_empty() {
        Verdict::Green
    } else {
        Verdict::Red { reasons }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, ended: Ended, tests: Option<[u64; 3]>) -> CheckResult {
        CheckResult {
            name: "test_command".to_owned(),
            command: command.to_owned(),
            ended,
            duration_ms: 12,
            tests: tests.map(|[passed, failed, skipped]| TestCount {
                passed,
                failed,
                skipped,
            }),
            failure: None,
        }
    }

    fn red(reason: &str) -> Verdict {
        Verdict::Red {
            reasons: vec![reason.to_owned()],
        }
    }

    #[test]
    fn green_needs_every_check() {
        let done = Ended::Exited(0);
        for (check, verdict) in [
            (check("make", done, None), Verdict::Green),
            (check("npm test", done, Some([3, 0, 1])), Verdict::Green),
            (
                check("npm test", done, Some([0, 0, 7])),
                red("`npm test` exited 0 but ran no test"),
            ),
            (
                check("npm test", Ended::Exited(1), Some([3, 2, 0])),
                red("`npm test`: exit 1, 2 of 5 tests failed"),
            ),
            (
                check("npm test", Ended::Exited(1), Some([0, 0, 0])),
                red("`npm test`: exit 1"),
            ),
            (
                check("make", Ended::TimedOut, None),
                red("`make`: timed out (124)"),
            ),
            (
                check("make", Ended::OutOfMemory, Some([3, 0, 0])),
                red("`make`: killed: out of memory"),
            ),
            (
                check("make", Ended::OutputLimit, None),
                red("`make`: killed: printed too much"),
            ),
            (
                check("make", Ended::Signalled(11), None),
                red("`make`: killed by signal 11"),
            ),
        ] {
            assert_eq!(judge(&[check]), verdict);
        }
    }

    #[test]
    fn nothing_checked_is_not_green() {
        assert_eq!(judge(&[]), red("there is no check to pass"));
    }

    #[test]
    fn every_reason_is_told() {
        let checks = [
            check("true", Ended::Exited(0), None),
            check("a", Ended::Exited(2), None),
            check("b", Ended::Exited(0), Some([0, 0, 0])),
        ];
        let reasons = vec![
            "`a`: exit 2".to_owned(),
            "`b` exited 0 but ran no test".to_owned(),
        ];
        assert_eq!(judge(&checks), Verdict::Red { reasons });
    }

    #[test]
    fn a_result_reads_back() {
        let result = check("a", Ended::Exited(2), Some([1, 2, 3]));
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(
            text,
            r#"{"name":"test_command","command":"a","ended":{"exited":2},"duration_ms":12,"tests":{"passed":1,"failed":2,"skipped":3}}"#
        );
        assert_eq!(serde_json::from_str::<CheckResult>(&text).unwrap(), result);
    }
}
