//! Recognises test runners, and confirms the number of tests that they report by a listing.

use std::sync::LazyLock;

use regex::Regex;

use super::shell::SimpleCommand;
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
    /// Returns the runner that a simple command starts, if it is a known one.
    pub fn of(command: &SimpleCommand) -> Option<Self> {
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

    /// Returns the name that people know it by.
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

    /// Tells whether it prints the number of its tests at the end of every run with these arguments.
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

/// Tells whether a program is an interpreter of Python.
pub(super) fn is_python(program: &str) -> bool {
    program
        .strip_prefix("python")
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// A check whose runner is known, with the command that lists its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The runner.
    pub runner: TestRunner,
    /// The command line that lists the tests; none where the runner cannot.
    pub command: Option<String>,
    line: String,
    words: Vec<String>,
}

/// What a listing says about the number of tests in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountCheck {
    /// The run has the tests that the listing has.
    Confirmed,
    /// Nothing speaks against the number, and nothing for it.
    Unconfirmed(String),
    /// The run does not have the tests that it should.
    Mismatch(String),
}

impl CountCheck {
    /// Judges the number of tests that an unknown runner reports.
    pub fn without_runner(line: &str, tests: Option<TestCount>) -> Self {
        match tests {
            None => Self::Confirmed,
            Some(tests) => Self::Unconfirmed(format!(
                "`{line}` reports {tests}, and no listing confirms the number"
            )),
        }
    }
}

/// Lists the tests of `python -m unittest` without running them.
const UNITTEST_LISTING: &str = "-c 'import sys, unittest\nclass Lister:\n    def __init__(self, *a, **k): pass\n    def run(self, tests):\n        print(\"listed %d tests\" % tests.countTestCases())\n        return unittest.TestResult()\nunittest.main(module=None, argv=[\"unittest\"] + sys.argv[1:], testRunner=Lister)'";

impl Listing {
    /// Recognises the runner of a check. It must be the last command of the line, and its output must
    /// reach the caller.
    pub fn of(line: &str) -> Option<Self> {
        let commands = SimpleCommand::split(line);
        let last = commands.last().filter(|last| last.is_plain)?;
        let runner = TestRunner::of(last)?;
        let end = last.words.last()?;
        let text = line.trim_end();
        let is_open = text.trim_end_matches(['"', '\'']).ends_with(end.as_str());
        let command = (is_open && !line.contains(['#', '`'])).then_some(text);
        Some(Self {
            runner,
            command: command.and_then(|text| listing(runner, text, &last.words)),
            line: line.to_owned(),
            words: last.words.clone(),
        })
    }

    /// Reads the number of tests from the output of the listing.
    pub fn count(&self, output: &str) -> Option<u64> {
        let lines = || output.lines().map(str::trim_end);
        let counted = |is_test: fn(&str) -> bool| {
            let count = lines().filter(|line| is_test(line)).count() as u64;
            (count > 0).then_some(count)
        };
        match self.runner {
            TestRunner::Pytest => pytest(output),
            TestRunner::Unittest => number_after(output, "listed "),
            TestRunner::Cargo => counted(|line| line.ends_with(": test")),
            TestRunner::Nextest => counted(|line| line.starts_with("    ")),
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
                return CountCheck::Mismatch(format!(
                    "`{line}` exited 0 without the summary that {name} prints: it ended early"
                ));
            }
            let why = format!("`{line}` does not print how many tests it ran");
            return CountCheck::Unconfirmed(why);
        };
        let total = tests.ran().saturating_add(tests.skipped);
        let Some(listed) = listed else {
            let why =
                format!("`{line}` reports {tests}, and no listing of {name} confirms the number");
            return CountCheck::Unconfirmed(why);
        };
        let is_same = match self.runner {
            TestRunner::Nextest => tests.ran() == listed,
            TestRunner::Vitest => total >= listed,
            TestRunner::Pytest
            | TestRunner::Unittest
            | TestRunner::Cargo
            | TestRunner::Go
            | TestRunner::Jest
            | TestRunner::Node => total == listed,
        };
        if is_same {
            return CountCheck::Confirmed;
        }
        CountCheck::Mismatch(format!(
            "{name} lists {listed} tests for `{line}`, the run reports {total}"
        ))
    }
}

/// Makes the command that lists the tests of a command line which ends with its runner.
fn listing(runner: TestRunner, line: &str, words: &[String]) -> Option<String> {
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
    match runner {
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
            is_known.then(|| line.replacen("nextest run", "nextest list", 1))
        }
        TestRunner::Go => Some(format!("{line} -list .")),
        TestRunner::Vitest if line.contains("vitest run") => {
            Some(line.replacen("vitest run", "vitest list", 1))
        }
        TestRunner::Vitest | TestRunner::Jest | TestRunner::Node => None,
    }
}

/// `3 tests collected in 0.01s`, `3/5 tests collected (2 deselected)`, or a number per file with `-qq`.
fn pytest(output: &str) -> Option<u64> {
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

fn number_after(output: &str, words: &str) -> Option<u64> {
    let line = output
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(words))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(passed: u64, skipped: u64) -> TestCount {
        TestCount {
            passed,
            skipped,
            ..TestCount::default()
        }
    }

    #[test]
    fn runners_are_recognised_where_they_are_the_last_command() {
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
            ("cargo nextest run -p x", Some("cargo nextest list -p x")),
            ("cargo nextest run --no-fail-fast", None),
            (
                "npm ci && npx vitest run",
                Some("npm ci && npx vitest list"),
            ),
            ("go test ./...", Some("go test ./... -list .")),
            ("node --test", None),
            ("(pytest)", None),
        ] {
            let found = Listing::of(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(found.command.as_deref(), listing, "{line}");
        }
        for line in [
            "pytest | tee log",
            "pytest > log",
            "pytest; true",
            "make test",
            "echo pytest",
            "",
        ] {
            assert_eq!(Listing::of(line), None, "{line}");
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
            (
                "cargo nextest run",
                "crate::it:\n    a::b\n    c\n",
                Some(2),
            ),
            ("go test ./...", "TestA\nTestB\nok  \tx\t0.1s\n", Some(2)),
            ("python -m unittest", "noise\nlisted 12 tests\n", Some(12)),
            (
                "npx vitest run",
                "a.test.ts > adds\na.test.ts > b > c\n",
                Some(2),
            ),
        ] {
            assert_eq!(Listing::of(line).unwrap().count(output), count, "{line}");
        }
    }

    #[test]
    fn a_run_that_ends_early_or_counts_otherwise_is_a_mismatch() {
        let pytest = Listing::of("pytest").unwrap();
        assert_eq!(
            pytest.compare(Some(3), Some(tests(2, 1))),
            CountCheck::Confirmed
        );
        assert_eq!(
            pytest.compare(Some(41), Some(tests(3, 0))),
            CountCheck::Mismatch("pytest lists 41 tests for `pytest`, the run reports 3".into())
        );
        assert_eq!(
            pytest.compare(Some(41), None),
            CountCheck::Mismatch(
                "`pytest` exited 0 without the summary that pytest prints: it ended early".into()
            )
        );
        let unconfirmed = [
            pytest.compare(None, Some(tests(3, 0))),
            Listing::of("pytest -qq").unwrap().compare(Some(3), None),
            Listing::of("go test ./...").unwrap().compare(Some(3), None),
        ];
        for check in unconfirmed {
            assert!(matches!(check, CountCheck::Unconfirmed(_)), "{check:?}");
        }
    }
}
