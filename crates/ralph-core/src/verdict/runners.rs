//! Parsers for the summaries of test runners.
//!
//! Most runners end with one line of numbers and words; [`SUMMARIES`] lists those. The others have
//! their own parsers. No line is counted by two parsers.

use std::sync::LazyLock;

use regex::Regex;

use super::TestCount;

/// Parses the lines of one kind of runner; `None` if it did not run.
type TestOutputParser = fn(&[&str]) -> Option<TestCount>;

/// The parsers of all known runners.
pub(super) const RUNNER_PARSERS: [TestOutputParser; 8] = [
    summaries,
    unittest,
    mocha,
    node,
    junit_console,
    ctest,
    go,
    tap,
];

/// Whether a number precedes its word (`3 passed`) or follows it (`Failures: 3`).
#[derive(Clone, Copy)]
enum NumberOrder {
    NumberFirst,
    NumberLast,
}

/// One summary line: its pattern with the numbers in the group `list`, and their order. A pattern
/// without the group means that there were no tests.
const SUMMARIES: [(&str, NumberOrder); 13] = {
    use NumberOrder::{NumberFirst, NumberLast};
    [
        // nextest
        (
            r"^ *Summary \[.*\] +[0-9/]+ tests? run: (?<list>.*)$",
            NumberFirst,
        ),
        // cargo test
        (
            r"^test result: [a-zA-Z]+\. (?<list>[0-9]+ passed; .*)$",
            NumberFirst,
        ),
        // pytest
        (
            r"^(?:=+ )?(?<list>(?:[0-9]+ (?:passed|failed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun|subtests passed)(?:, )?)+) in [0-9.]+s(?: \([0-9:]+\))?(?: =+)?$",
            NumberFirst,
        ),
        (r"^(?:=+ )?no tests ran in [0-9.]+s(?: =+)?$", NumberFirst),
        // Jest
        (r"^Tests: +(?<list>.*[0-9]+ total)$", NumberFirst),
        (r"^No tests found, exiting with code [0-9]+$", NumberFirst),
        // Vitest
        (
            r"^ *Tests  +(?<list>(?:[0-9]+ [a-z]+[ |]*)+)(?:\([0-9]+\))?$",
            NumberFirst,
        ),
        (
            r"^ *(?:Tests  +no tests|No test files found, exiting with code [0-9]+)$",
            NumberFirst,
        ),
        // RSpec, Minitest, test-unit, bats, ExUnit
        (
            r"^(?<list>[0-9]+ (?:examples?|runs|tests?)(?:, [0-9]+ assertions)?, [0-9]+ failures?\b.*)$",
            NumberFirst,
        ),
        // PHPUnit, JUnit 4
        (
            r"^OK \((?<list>[0-9]+ tests?(?:, [0-9]+ assertions?)?)\)$",
            NumberFirst,
        ),
        (
            r"^(?<list>Tests: [0-9]+, Assertions: [0-9]+.*)\.$",
            NumberLast,
        ),
        (r"^No tests executed!$", NumberFirst),
        // Surefire's totals; the lines of single classes end with a time.
        (
            r"^(?:\[[A-Z]+\] +)?(?<list>Tests run: [0-9]+, +Failures: [0-9]+(?:, Errors: [0-9]+)?(?:, Skipped: [0-9]+)?)(?:, Flakes: [0-9]+)?$",
            NumberLast,
        ),
    ]
};

fn summaries(lines: &[&str]) -> Option<TestCount> {
    static PATTERNS: LazyLock<Vec<(Regex, NumberOrder)>> = LazyLock::new(|| {
        SUMMARIES
            .iter()
            .map(|(pattern, order)| (compile_pattern(pattern), *order))
            .collect()
    });
    let read = |line: &&str| {
        PATTERNS.iter().find_map(|(pattern, order)| {
            let found = pattern.captures(line)?;
            let list = found.name("list").map_or("", |list| list.as_str());
            Some(tally(list, *order))
        })
    };
    lines.iter().filter_map(read).reduce(|a, b| a + b)
}

/// Parses the last line like `3 passed, 1 failed`; used if no runner is recognised.
pub(super) fn parse_plain(lines: &[&str]) -> Option<TestCount> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^[^0-9]*(?<list>[0-9]+ (?:passed *[,;|] *[0-9]+ failed|failed *[,;|] *[0-9]+ passed)\b.*)$",
        )
    });
    let last = lines.iter().rev().find_map(|line| LINE.captures(line))?;
    Some(tally(&last["list"], NumberOrder::NumberFirst))
}

fn tally(list: &str, order: NumberOrder) -> TestCount {
    static FIRST: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern("(?<number>[0-9]+) (?<word>[A-Za-z]+)"));
    static LAST: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern("(?<word>[A-Za-z]+)[A-Za-z ]*: *(?<number>[0-9]+)"));
    let pairs = match order {
        NumberOrder::NumberFirst => &FIRST,
        NumberOrder::NumberLast => &LAST,
    };
    let mut sums = TestSums::default();
    for pair in pairs.captures_iter(list) {
        sums.add(&pair["word"], number(&pair["number"]));
    }
    sums.count()
}

/// Test numbers by category.
#[derive(Default)]
struct TestSums {
    passed: Option<u64>,
    failed: u64,
    skipped: u64,
    xfailed: u64,
    total: u64,
}

impl TestSums {
    fn add(&mut self, word: &str, number: u64) {
        match word.to_ascii_lowercase().as_str() {
            // Runners that are strict about unexpected passes report them as failed.
            "passed" | "passing" | "pass" | "xpassed" => {
                self.passed = Some(self.passed.unwrap_or(0).saturating_add(number));
            }
            "failed" | "failing" | "fail" | "failure" | "failures" | "error" | "errors"
            | "timed" | "exec" | "cancelled" => self.failed = self.failed.saturating_add(number),
            "skipped" | "ignored" | "pending" | "pendings" | "todo" | "skips" | "omissions"
            | "incomplete" | "excluded" => self.skipped = self.skipped.saturating_add(number),
            "xfailed" => self.xfailed = self.xfailed.saturating_add(number),
            "tests" | "test" | "runs" | "examples" | "example" | "total" => self.total = number,
            _ => {}
        }
    }

    fn count(&self) -> TestCount {
        let others = [self.failed, self.skipped, self.xfailed];
        let rest = others.into_iter().fold(self.total, u64::saturating_sub);
        TestCount {
            passed: self.passed.unwrap_or(rest),
            failed: self.failed,
            skipped: self.skipped,
            xfailed: self.xfailed,
        }
    }
}

/// `Ran 3 tests in 0.001s`, and a few lines below `FAILED (failures=1)`.
fn unittest(lines: &[&str]) -> Option<TestCount> {
    static RAN: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^Ran (?<total>[0-9]+) tests? in [0-9.]+s$"));
    static DETAIL: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern("(?<word>[a-z]+)[a-z ]*=(?<number>[0-9]+)"));
    let mut count = None;
    for (index, line) in lines.iter().enumerate() {
        let Some(ran) = RAN.captures(line) else {
            continue;
        };
        let mut sums = TestSums {
            total: number(&ran["total"]),
            ..TestSums::default()
        };
        let result = lines[index + 1..].iter().find(|line| !line.is_empty());
        for detail in result
            .into_iter()
            .flat_map(|line| DETAIL.captures_iter(line))
        {
            // `expected failures`, and `unexpected successes`, which unittest counts as failed.
            let word = match &detail["word"] {
                "expected" => "xfailed",
                "unexpected" => "failed",
                word => word,
            };
            sums.add(word, number(&detail["number"]));
        }
        count = Some(count.unwrap_or_default() + sums.count());
    }
    count
}

/// `  3 passing (12ms)`, `  1 pending` and `  2 failing`, a line each.
fn mocha(lines: &[&str]) -> Option<TestCount> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            r"^ +(?<number>[0-9]+) (?<word>passing|pending|failing)(?: \([0-9a-z]+\))?$",
        )
    });
    let sums = sum_lines(lines, &LINE);
    sums.passed.map(|_| sums.count())
}

/// `# pass 3` or `ℹ pass 3`, and likewise for the other categories.
fn node(lines: &[&str]) -> Option<TestCount> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern("^(?:#|ℹ) (?<word>pass|fail|cancelled|skipped|todo) (?<number>[0-9]+)$")
    });
    let sums = sum_lines(lines, &LINE);
    sums.passed.map(|_| sums.count())
}

/// `[         3 tests successful      ]`, and likewise for the other categories.
fn junit_console(lines: &[&str]) -> Option<TestCount> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(r"^\[ +(?<number>[0-9]+) tests (?<word>successful|failed|skipped) +\]$")
    });
    let mut sums = TestSums::default();
    for found in lines.iter().filter_map(|line| LINE.captures(line)) {
        let word = if &found["word"] == "successful" {
            "passed"
        } else {
            &found["word"]
        };
        sums.add(word, number(&found["number"]));
    }
    sums.passed.map(|_| sums.count())
}

fn sum_lines(lines: &[&str], pattern: &Regex) -> TestSums {
    let mut sums = TestSums::default();
    for found in lines.iter().filter_map(|line| pattern.captures(line)) {
        sums.add(&found["word"], number(&found["number"]));
    }
    sums
}

/// `67% tests passed, 1 tests failed out of 3`.
fn ctest(lines: &[&str]) -> Option<TestCount> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern(
            "^[0-9]+% tests passed, (?<failed>[0-9]+) tests failed out of (?<total>[0-9]+)$",
        )
    });
    let read = |line: &&str| {
        if *line == "No tests were found!!!" {
            return Some(TestCount::default());
        }
        let found = LINE.captures(line)?;
        let sums = TestSums {
            failed: number(&found["failed"]),
            total: number(&found["total"]),
            ..TestSums::default()
        };
        Some(sums.count())
    };
    lines.iter().filter_map(read).reduce(|a, b| a + b)
}

/// `--- PASS: TestName (0.00s)` with `-v`. Without it, only failures and packages without tests are
/// listed; the latter count as zero tests if no package has any.
fn go(lines: &[&str]) -> Option<TestCount> {
    static PACKAGE: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^(?:ok|FAIL|\?) *\t\S+\t(?<what>.*)$"));
    static FAILED: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^FAIL\t\S+(?:\t[0-9.]+s| \[[a-z ]+ failed\])$"));
    let starting = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count() as u64;
    // A package that does not compile fails without any test.
    let failed_packages = lines.iter().filter(|line| FAILED.is_match(line)).count() as u64;
    let failed = starting("--- FAIL: ").max(failed_packages);
    if starting("=== RUN ") > 0 || failed_packages > 0 {
        return Some(TestCount {
            passed: starting("--- PASS: "),
            failed,
            skipped: starting("--- SKIP: "),
            xfailed: 0,
        });
    }
    let packages: Vec<bool> = lines
        .iter()
        .filter_map(|line| PACKAGE.captures(line))
        .map(|found| {
            found["what"].ends_with("[no test files]")
                || found["what"].ends_with("[no tests to run]")
        })
        .collect();
    let none_has_tests = !packages.is_empty() && packages.iter().all(|is_empty| *is_empty);
    none_has_tests.then(TestCount::default)
}

/// `ok 1 - name` and `not ok 2 - name` with a plan `1..2`, or the summary of `prove`.
fn tap(lines: &[&str]) -> Option<TestCount> {
    static PLAN: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern(r"^1\.\.(?<number>[0-9]+)(?: *#.*)?$"));
    static POINT: LazyLock<Regex> = LazyLock::new(|| {
        compile_pattern("^(?<not>not )?ok [0-9]+(?: [^#]*)?(?:# *(?<mark>(?i:skip|todo)).*)?")
    });
    if let Some(count) = prove(lines) {
        return Some(count);
    }
    if node(lines).is_some() {
        return None;
    }
    let planned: Vec<u64> = lines
        .iter()
        .filter_map(|line| PLAN.captures(line))
        .map(|plan| number(&plan["number"]))
        .collect();
    let mut count = TestCount::default();
    for point in lines.iter().filter_map(|line| POINT.captures(line)) {
        let mark = point.name("mark").map(|mark| mark.as_str());
        let is_todo = mark.is_some_and(|mark| mark.eq_ignore_ascii_case("todo"));
        match (point.name("not"), mark) {
            (_, Some(_)) if !is_todo => count.skipped += 1,
            (Some(_), Some(_)) => count.xfailed += 1,
            (Some(_), None) => count.failed += 1,
            (None, Some(_) | None) => count.passed += 1,
        }
    }
    let is_tap = count != TestCount::default() || planned.contains(&0);
    (!planned.is_empty() && is_tap).then_some(count)
}

/// `Files=1, Tests=3, …` and, for each file that failed, `Failed 1/3 subtests`.
fn prove(lines: &[&str]) -> Option<TestCount> {
    static FILES: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern("^Files=[0-9]+, Tests=(?<total>[0-9]+), "));
    static FAILED: LazyLock<Regex> =
        LazyLock::new(|| compile_pattern("^Failed (?<failed>[0-9]+)/[0-9]+ subtests"));
    let sum = |pattern: &Regex, group: &str| {
        let found = lines
            .iter()
            .filter_map(|line| pattern.captures(line.trim_start()));
        found
            .map(|found| number(&found[group]))
            .reduce(u64::saturating_add)
    };
    let total = sum(&FILES, "total")?;
    let failed = sum(&FAILED, "failed").unwrap_or(0);
    Some(TestCount {
        passed: total.saturating_sub(failed),
        failed,
        skipped: 0,
        xfailed: 0,
    })
}

/// Parses digits; numbers that do not fit saturate.
fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

fn compile_pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed")
}
