//! Finds tests that prove less than before, in the diff between the base and the branch.
//!
//! The diff is text and languages differ, so this counts lines by keywords: removed assertions,
//! removed tests, and markers that skip tests or focus on some of them. A finding is a hint; a test
//! that was rewritten for good reasons is reported, too.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::touched::SurfaceFinding;

/// The changed lines of one file by category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TestLines {
    assertions: LineBalance,
    tests: LineBalance,
    skips: LineBalance,
    focused: LineBalance,
    is_new: bool,
    is_deleted: bool,
}

/// Added and removed lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LineBalance {
    added: u64,
    removed: u64,
}

impl LineBalance {
    fn count(&mut self, line: &str, pattern: &Regex, is_added: bool) {
        if pattern.is_match(line) {
            if is_added {
                self.added += 1;
            } else {
                self.removed += 1;
            }
        }
    }

    fn lost(self) -> u64 {
        self.removed.saturating_sub(self.added)
    }

    fn gained(self) -> u64 {
        self.added.saturating_sub(self.removed)
    }
}

static ASSERTION: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)\bassert|\bexpect(?:_[a-z]+)?\s*[(!]|\bshould\b|\.(?:to|not)(?:Be|Equal|Throw|Have|Match|Contain)|\brequire\.[A-Z]|\bt\.(?:Error|Fatal|Fail)|\b(?:ok|is|is_deeply|cmp_ok)\s*\(|pytest\.raises|^\s*(?:if )?\[\[? |\btest -|\bgrep -q|\bdiff\b|\bexit 1\b|\bcmp\b",
    )
});
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r#"^\s*(?:(?:async )?def test|#\[(?:tokio::|test_case|rstest)?.*test|func (?:Test|Benchmark|Fuzz)|@(?:Parameterized)?Test\b|[xf]?(?:it|test|describe|specify|context)(?:\.[a-z]+)*(?:\(.*\))?\s*[( "']|public (?:function|void) test|fun `|@test )"#,
    )
});
static SKIP: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)pytest\.(?:mark\.)?(?:skip|xfail|importorskip)|unittest\.(?:skip|expectedFailure)|@skip\b|\bskipTest\(|\bself\.skip|#\[ignore|\b(?:it|test|describe|context|suite)\.(?:skip|todo|fails|failing)\b|\bx(?:it|test|describe|specify|context)\b|\bt\.Skip|\btesting\.Short\(|@(?:Disabled|Ignore)\b|\bpending\b|\bmarkTestSkipped|\bmarkTestIncomplete|\bskip\s*[:=]\s*(?:true|['\x22])|# *(?:skip|todo)\b|collect_ignore|@tag :skip",
    )
});
static FOCUS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"\b(?:it|test|describe|context|suite)\.only\b|\bf(?:it|describe|context)\s*\(|@focus\b|\bfocus: true|@tag :focus",
    )
});

fn compile_pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed")
}

/// The suspicious test files of a diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestDiff {
    /// Files that prove less than before, or are deleted.
    pub weakened: Vec<SurfaceFinding>,
    /// Files in which assertions were replaced by as many others.
    pub rewritten: Vec<SurfaceFinding>,
}

/// Examines a diff of test files in the format of `git diff` without renames. Ignores new files.
pub fn examine_test_diff(diff: &str) -> TestDiff {
    let mut order = Vec::new();
    let mut files: BTreeMap<String, TestLines> = BTreeMap::new();
    let mut path = String::new();
    let mut in_hunk = false;
    for line in diff.lines() {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            path = header_path(rest);
            order.push(path.clone());
            in_hunk = false;
            continue;
        }
        let counted = files.entry(path.clone()).or_default();
        if !in_hunk {
            counted.is_new |= line.starts_with("new file mode");
            counted.is_deleted |= line.starts_with("deleted file mode");
            in_hunk = line.starts_with("@@ ");
            continue;
        }
        let (is_added, text) = match (line.strip_prefix('+'), line.strip_prefix('-')) {
            (Some(text), _) => (true, text),
            (None, Some(text)) => (false, text),
            (None, None) => continue,
        };
        counted.assertions.count(text, &ASSERTION, is_added);
        counted.tests.count(text, &TEST, is_added);
        counted.skips.count(text, &SKIP, is_added);
        counted.focused.count(text, &FOCUS, is_added);
    }
    let mut examined = TestDiff::default();
    for path in order {
        match files.get(&path).map(TestLines::judge) {
            Some(TestChangeKind::Weakened(why)) => {
                examined.weakened.push(SurfaceFinding { path, why });
            }
            Some(TestChangeKind::Rewritten(why)) => {
                examined.rewritten.push(SurfaceFinding { path, why });
            }
            Some(TestChangeKind::Fine) | None => {}
        }
    }
    examined
}

/// Returns the path from `a/PATH b/PATH`, which are equal without renames.
fn header_path(header: &str) -> String {
    let half = header.len() / 2;
    let path = header.get(half + 1..).unwrap_or(header);
    path.strip_prefix("b/").unwrap_or(path).to_owned()
}

/// The effect of a file's changes.
enum TestChangeKind {
    Weakened(String),
    Rewritten(String),
    Fine,
}

impl TestLines {
    fn judge(&self) -> TestChangeKind {
        if self.is_new {
            return TestChangeKind::Fine;
        }
        if self.is_deleted {
            return TestChangeKind::Weakened("test file removed".to_owned());
        }
        let reasons: Vec<String> = [
            (self.tests.lost(), "test removed", "tests removed"),
            (
                self.assertions.lost(),
                "assertion removed",
                "assertions removed",
            ),
            (
                self.skips.gained(),
                "skip marker added",
                "skip markers added",
            ),
            (
                self.focused.gained(),
                "marker added that runs only some tests",
                "markers added that run only some tests",
            ),
        ]
        .into_iter()
        .filter(|(number, _, _)| *number > 0)
        .map(|(number, one, many)| format!("{number} {}", if number == 1 { one } else { many }))
        .collect();
        if !reasons.is_empty() {
            return TestChangeKind::Weakened(format!("test weakened: {}", reasons.join(", ")));
        }
        match self.assertions.removed {
            0 => TestChangeKind::Fine,
            1 => TestChangeKind::Rewritten("test changed: 1 assertion rewritten".to_owned()),
            number => {
                TestChangeKind::Rewritten(format!("test changed: {number} assertions rewritten"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
