//! Counts the tests that a command ran, from the output of its test runners.
//!
//! Only known summary lines count. If none is recognised, the result is `None`: a wrong zero would
//! reject a good run.

use std::borrow::Cow;
use std::fmt;
use std::ops::Add;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::runners;

/// Test counts of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestCount {
    pub passed: u64,
    /// Including tests that could not run.
    pub failed: u64,
    pub skipped: u64,
    /// Failed as expected. They prove nothing, so they do not count as passed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub xfailed: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TestCount {
    /// Returns the number of tests that ran.
    pub fn ran(self) -> u64 {
        self.passed
            .saturating_add(self.failed)
            .saturating_add(self.xfailed)
    }

    /// Returns the number of tests that ran or were skipped.
    pub fn total(self) -> u64 {
        self.ran().saturating_add(self.skipped)
    }
}

impl fmt::Display for TestCount {
    /// Prints `3 passed, 1 failed, 2 skipped, 1 failed as expected`, without the zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed", self.passed)?;
        for (number, word) in [
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.xfailed, "failed as expected"),
        ] {
            if number > 0 {
                write!(f, ", {number} {word}")?;
            }
        }
        Ok(())
    }
}

impl Add for TestCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
            xfailed: self.xfailed.saturating_add(other.xfailed),
        }
    }
}

/// Counts the tests in a command's output, summed over all runners that ran.
///
/// Supports cargo, nextest, pytest, unittest, Jest, Vitest, Mocha, `node --test`, `go test`, TAP,
/// prove, `RSpec`, Minitest, `PHPUnit`, `JUnit`, Surefire, `CTest`, bats, `ExUnit` and plain `3
/// passed, 1 failed`.
pub fn count_tests(output: &str) -> Option<TestCount> {
    let output = without_colours(output);
    let lines: Vec<&str> = output.lines().map(visible_part).collect();
    runners::RUNNER_PARSERS
        .iter()
        .filter_map(|count| count(&lines))
        .reduce(TestCount::add)
        .or_else(|| runners::parse_plain(&lines))
}

/// Returns the visible rest of a line that carriage returns have overwritten.
fn visible_part(line: &str) -> &str {
    line.trim_end_matches('\r')
        .rsplit('\r')
        .next()
        .unwrap_or_default()
}

fn without_colours(text: &str) -> Cow<'_, str> {
    static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
            .expect("the pattern is fixed")
    });
    ESCAPES.replace_all(text, "")
}

#[cfg(test)]
mod tests;
