//! Recognises test runners and compares the number of tests they report with a listing.

use std::sync::LazyLock;

use regex::Regex;

use super::command_line::SimpleCommand;
use super::counting::CountCheck;
use crate::parse_value;
use crate::verdict::TestCount;

/// A program that runs tests and reports their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestRunner {
    /// `pytest`, `python -m pytest`.
    Pytest,
    /// `python -m unittest`.
    Unittest,
    /// `cargo test`.
    Cargo,
    /// `cargo nextest run`.
    Nextest,
    /// `go test`.
    Go,
    /// `jest`.
    Jest,
    /// `vitest`.
    Vitest,
    /// `node --test`.
    Node,
}

impl TestRunner {
    /// Returns the known runner that a simple command starts, if any.
    pub fn from_command(command: &SimpleCommand) -> Option<Self> {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let is_python = is_python(command.program());
        match (command.program(), words.get(1..).unwrap_or_default()) {
            ("pytest" | "py.test", _) => Some(Self::Pytest),
            (_, ["-m", "pytest", ..]) if is_python => Some(Self::Pytest),
            (_, ["-m", "unittest", ..]) if is_python => Some(Self::Unittest),
            ("cargo", ["test" | "t", ..]) => Some(Self::Cargo),
            ("cargo", ["nextest", "run", ..]) => Some(Self::Nextest),
            ("go", ["test", ..]) => Some(Self::Go),
            ("jest", _) => Some(Self::Jest),
            ("vitest", _) => Some(Self::Vitest),
            ("node", rest) if rest.contains(&"--test") => Some(Self::Node),
            _ => None,
        }
    }

    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::Cargo => "cargo test",
            Self::Nextest => "cargo nextest",
            Self::Go => "go test",
            Self::Jest => "Jest",
            Self::Vitest => "Vitest",
            Self::Node => "node --test",
        }
    }

    /// Returns whether a command with these arguments runs tests; some options only build or list.
    fn runs_tests(self, words: &[String]) -> bool {
        let other_modes: &[&str] = match self {
            Self::Pytest => &[
                "--collect-only",
                "--co",
                "--fixtures",
                "--markers",
                "--setup-plan",
                "--version",
                "--help",
                "-h",
            ],
            Self::Unittest => &["--help", "-h"],
            Self::Cargo | Self::Nextest => &["--no-run", "--list", "--help", "-h"],
            Self::Go => &["-c", "-list", "-n"],
            Self::Jest => &["--listTests", "--showConfig", "--version", "--help"],
            Self::Vitest => &["list", "bench", "--version", "--help"],
            Self::Node => &[],
        };
        !has_option(words, other_modes)
    }

    /// Returns whether a run with these arguments always ends with a summary of its tests.
    fn always_counts(self, words: &[String]) -> bool {
        let has = |part: &str| words.iter().any(|word| word.contains(part));
        let quiet = words
            .iter()
            .filter(|word| matches!(word.as_str(), "-q" | "--quiet"));
        match self {
            Self::Pytest => quiet.count() < 2 && !has("-qq"),
            Self::Go => false,
            Self::Jest | Self::Vitest | Self::Node => !has("reporter") && !has("--json"),
            Self::Unittest | Self::Cargo | Self::Nextest => true,
        }
    }
}

/// Returns whether one of the options is present, with or without a value. A single and a double
/// dash are equivalent, as in `go`.
fn has_option(words: &[String], options: &[&str]) -> bool {
    words.iter().any(|word| {
        let name = word.split('=').next().unwrap_or_default();
        options.iter().any(|option| {
            name == *option || name.strip_prefix('-').is_some_and(|name| name == *option)
        })
    })
}

/// Returns whether a program is a Python interpreter.
pub(super) fn is_python(program: &str) -> bool {
    program
        .strip_prefix("python")
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// A check with a known runner and the command that lists its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestListing {
    pub runner: TestRunner,
    /// The command line that lists the tests; `None` if the runner cannot list the same tests, or
    /// if the check's command line cannot be extended.
    pub command: Option<String>,
    line: String,
    words: Vec<String>,
}

/// Lists the tests of `python -m unittest` without running them.
const UNITTEST_LISTING: &str = "-c 'import sys, unittest\nclass Lister:\n    def __init__(self, *a, **k): pass\n    def run(self, tests):\n        print(\"listed %d tests\" % tests.countTestCases())\n        return unittest.TestResult()\nunittest.main(module=None, argv=[\"unittest\"] + sys.argv[1:], testRunner=Lister)'";

impl TestListing {
    /// Recognises the runner of a check. It must be the last command of the line, run tests, and
    /// pass its output to the caller.
    pub fn parse(line: &str) -> Option<Self> {
        let commands = SimpleCommand::split(line);
        let last = commands.last().filter(|last| last.is_plain)?;
        let runner =
            TestRunner::from_command(last).filter(|runner| runner.runs_tests(&last.words))?;
        let last_word = last.words.last()?;
        let text = line.trim_end();
        // Options are appended to the text, so it must end with the runner's last argument.
        let ends_with_runner = text
            .trim_end_matches(['"', '\''])
            .ends_with(last_word.as_str());
        let command = (ends_with_runner && !line.contains(['#', '`'])).then_some(text);
        Some(Self {
            runner,
            command: command.and_then(|text| listing_command(runner, text, &last.words)),
            line: line.to_owned(),
            words: last.words.clone(),
        })
    }

    /// Parses the number of tests from the standard output of the listing. Standard error is
    /// excluded because it contains the progress of build tools.
    pub fn count(&self, output: &str) -> Option<u64> {
        let lines = || output.lines().map(str::trim_end);
        let counted = |is_test: fn(&str) -> bool| {
            let count = lines().filter(|line| is_test(line)).count() as u64;
            (count > 0).then_some(count)
        };
        match self.runner {
            TestRunner::Pytest => count_pytest(output),
            TestRunner::Unittest => number_after(output, "listed "),
            TestRunner::Cargo => counted(|line| line.ends_with(": test")),
            TestRunner::Nextest => lines().rev().find_map(count_nextest),
            TestRunner::Go => counted(|line| {
                ["Test", "Example", "Fuzz"]
                    .iter()
                    .any(|start| line.starts_with(start))
            }),
            TestRunner::Vitest => counted(|line| line.contains(" > ")),
            TestRunner::Jest | TestRunner::Node => None,
        }
    }

    /// Compares a listing with a run that exited 0.
    pub fn compare(&self, listed: Option<u64>, tests: Option<TestCount>) -> CountCheck {
        let (line, name) = (&self.line, self.runner.name());
        let Some(tests) = tests else {
            if self.runner.always_counts(&self.words) {
                return CountCheck::MissingSummary(format!(
                    "`{line}` exited 0 without the summary that {name} prints"
                ));
            }
            let why = format!("`{line}` does not print the number of tests it ran");
            return CountCheck::Unconfirmed(why);
        };
        let Some(listed) = listed else {
            let why =
                format!("`{line}` reports {tests}, and no listing of {name} confirms the number");
            return CountCheck::Unconfirmed(why);
        };
        let total = tests.total();
        let why = format!("{name} lists {listed} tests for `{line}`, the run reports {total}");
        // A module that is skipped as a whole is reported but not listed.
        let may_exceed = match self.runner {
            TestRunner::Vitest | TestRunner::Go => true,
            TestRunner::Pytest
            | TestRunner::Unittest
            | TestRunner::Cargo
            | TestRunner::Nextest
            | TestRunner::Jest
            | TestRunner::Node => tests.ran() <= listed,
        };
        if total < listed {
            CountCheck::Short(why)
        } else if may_exceed {
            CountCheck::Confirmed
        } else {
            CountCheck::Exceeded(why)
        }
    }
}

/// Options that `cargo nextest run` and `cargo nextest list` share.
const NEXTEST_FLAGS: &[&str] = &[
    "-p",
    "--package",
    "--workspace",
    "--all",
    "--all-features",
    "--features",
    "-F",
    "--no-default-features",
    "-E",
    "--filterset",
    "--test",
    "--lib",
    "--bin",
    "--bins",
    "--tests",
    "--release",
    "-r",
    "--locked",
    "--offline",
    "--frozen",
    "--manifest-path",
];
/// Options of `go test` that change which tests run or how often, and that the listing ignores.
const GO_SELECTION: &[&str] = &[
    "-run", "-skip", "-count", "-bench", "-fuzz", "-cpu", "-json",
];
/// The same kind of options for Vitest.
const VITEST_SELECTION: &[&str] = &["--shard", "--changed", "--bail", "--retry"];
/// The same kind of options for pytest and its plugins.
const PYTEST_SELECTION: &[&str] = &["--reruns", "--count", "--flake-finder", "--splits"];

/// Builds the command that lists the tests of a command line ending with its runner.
fn listing_command(runner: TestRunner, line: &str, words: &[String]) -> Option<String> {
    match runner {
        TestRunner::Pytest if has_option(words, PYTEST_SELECTION) => None,
        TestRunner::Pytest => Some(format!("{line} --collect-only")),
        TestRunner::Unittest => Some(line.replacen("-m unittest", UNITTEST_LISTING, 1)),
        TestRunner::Cargo if words.iter().any(|word| word == "--") => {
            Some(format!("{line} --list"))
        }
        TestRunner::Cargo => Some(format!("{line} -- --list")),
        TestRunner::Nextest => {
            let is_known = |word: &String| {
                let flag = word.split('=').next().unwrap_or_default();
                !word.starts_with('-') || NEXTEST_FLAGS.contains(&flag)
            };
            let is_known = words.iter().all(is_known);
            let list = || line.replacen("nextest run", "nextest list", 1);
            is_known.then(|| format!("{} --message-format json", list()))
        }
        TestRunner::Go if has_option(words, GO_SELECTION) => None,
        TestRunner::Go => Some(format!("{line} -list .")),
        TestRunner::Vitest if has_option(words, VITEST_SELECTION) => None,
        TestRunner::Vitest if line.contains("vitest run") => {
            Some(line.replacen("vitest run", "vitest list", 1))
        }
        TestRunner::Vitest | TestRunner::Jest | TestRunner::Node => None,
    }
}

/// Parses `3 tests collected in 0.01s`, `3/5 tests collected (2 deselected)`, or one number per
/// file with `-qq`.
fn count_pytest(output: &str) -> Option<u64> {
    static TOTAL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^=* ?(?:(?<number>[0-9]+)(?:/[0-9]+)? tests?|no tests) collected")
            .expect("the pattern is fixed")
    });
    static FILE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^\S+\.py: (?<number>[0-9]+)\s*$").expect("the pattern is fixed")
    });
    let number = |found: &regex::Captures<'_>| -> u64 {
        let digits = found.name("number").map_or("0", |digits| digits.as_str());
        digits.parse().unwrap_or(u64::MAX)
    };
    if let Some(found) = TOTAL.captures_iter(output).last() {
        return Some(number(&found));
    }
    let files = FILE.captures_iter(output).map(|found| number(&found));
    files.reduce(u64::saturating_add)
}

/// Parses the line that `cargo nextest list --message-format json` prints.
fn count_nextest(line: &str) -> Option<u64> {
    let Ok(list) = serde_json::from_str::<serde_json::Value>(line) else {
        return None;
    };
    let suites = list.get("rust-suites")?.as_object()?;
    let cases = suites
        .values()
        .filter_map(|suite| suite.get("testcases")?.as_object())
        .flat_map(serde_json::Map::values);
    let is_run = |case: &&serde_json::Value| case["filter-match"]["status"] == "matches";
    Some(cases.filter(is_run).count() as u64)
}

fn number_after(output: &str, words: &str) -> Option<u64> {
    let line = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(words))?;
    parse_value(line.split(' ').next()?)
}

#[cfg(test)]
mod tests;
