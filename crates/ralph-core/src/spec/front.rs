//! The front matter of an issue: `key: value` lines, between two `---` lines or at the start of the text.

use std::collections::BTreeSet;

use crate::lint::{LintFinding, excerpt, to_u32};

/// The known keys.
const KEYS: [&str; 3] = ["branch", "base", "depends"];

/// The most lines of a front matter.
const MAX_LINES: usize = 100;

/// The most issues that an issue depends on.
pub(super) const MAX_DEPENDENCIES: usize = 50;

/// The values of a front matter; an empty value counts as missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct IssueFront {
    pub(super) branch: Option<FrontValue>,
    pub(super) base: Option<FrontValue>,
    pub(super) depends: BTreeSet<u64>,
    /// The first line after it, counted from 0.
    pub(super) body: usize,
}

/// A value with its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FrontValue {
    pub(super) text: String,
    pub(super) line: u32,
}

/// Parses the front matter of an issue's lines.
pub(super) fn parse_front(lines: &[String], findings: &mut Vec<LintFinding>) -> IssueFront {
    let first = lines.iter().position(|line| !line.trim().is_empty());
    let Some(first) = first else {
        return IssueFront::default();
    };
    if lines[first].trim_end() != "---" {
        return parse_bare(lines, first, findings);
    }
    let mut inner = lines[first + 1..].iter().take(MAX_LINES);
    let Some(length) = inner.position(|line| line.trim_end() == "---") else {
        findings.push(
            LintFinding::error(
                "front-matter-not-closed",
                "the front matter is not closed",
                "add a line `---` after it",
            )
            .on_line(to_u32(first + 1)),
        );
        return IssueFront {
            body: first + 1,
            ..IssueFront::default()
        };
    };
    let end = first + 1 + length;
    let mut front = IssueFront {
        body: end + 1,
        ..IssueFront::default()
    };
    read_lines(lines, first + 1, end, &mut front, findings);
    front
}

/// Parses lines with known keys at the start of a text without `---`.
fn parse_bare(lines: &[String], first: usize, findings: &mut Vec<LintFinding>) -> IssueFront {
    let is_front = |line: &&String| {
        let key = line.split_once(':').map_or("", |(key, _)| key.trim_end());
        KEYS.contains(&key) || list_item(line).is_some_and(|item| parse_numbers(item).is_ok())
    };
    let has_key = lines[first]
        .split_once(':')
        .is_some_and(|(key, _)| KEYS.contains(&key.trim_end()));
    if !has_key {
        return IssueFront::default();
    }
    let length = lines[first..]
        .iter()
        .take(MAX_LINES)
        .take_while(is_front)
        .count();
    let end = first + length;
    let mut front = IssueFront {
        body: end,
        ..IssueFront::default()
    };
    read_lines(lines, first, end, &mut front, findings);
    front
}

fn read_lines(
    lines: &[String],
    first: usize,
    end: usize,
    front: &mut IssueFront,
    findings: &mut Vec<LintFinding>,
) {
    let mut seen: Vec<&str> = Vec::new();
    let mut at = first;
    while at < end {
        let line = lines[at].trim();
        let number = to_u32(at + 1);
        at += 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            findings.push(unknown_line(line).on_line(number));
            continue;
        };
        let (key, value) = (key.trim(), unquote(value.trim()));
        if !KEYS.contains(&key) {
            findings.push(unknown_line(key).on_line(number));
            continue;
        }
        let mut value = value.to_owned();
        if key == "depends" && value.is_empty() {
            while let Some(item) = lines[..end].get(at).and_then(|line| list_item(line)) {
                value = format!("{value} {item}");
                at += 1;
            }
        }
        if seen.contains(&key) {
            // The first one counts.
            findings.push(duplicate_key(key).on_line(number));
            continue;
        }
        seen.push(key);
        store(key, &value, number, front, findings);
    }
}

fn store(
    key: &str,
    value: &str,
    line: u32,
    front: &mut IssueFront,
    findings: &mut Vec<LintFinding>,
) {
    let value = value.trim();
    if value.is_empty() {
        return;
    }
    if key == "depends" {
        match parse_numbers(value) {
            Ok(numbers) => front.depends = numbers,
            Err(finding) => findings.push(finding.on_line(line)),
        }
        return;
    }
    let value = Some(FrontValue {
        text: value.to_owned(),
        line,
    });
    if key == "branch" {
        front.branch = value;
    } else {
        front.base = value;
    }
}

/// Parses numbers of issues: `[24, 25]`, `24 25`, `#24, #25`.
fn parse_numbers(text: &str) -> Result<BTreeSet<u64>, LintFinding> {
    let inner = text.trim();
    let inner = inner
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(inner);
    let words = inner
        .split([',', ' ', '\t'])
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let mut numbers = BTreeSet::new();
    for word in words {
        let word = unquote(word);
        let digits = word.strip_prefix('#').unwrap_or(word);
        let number = crate::parse_value::<u64>(digits).filter(|number| *number > 0);
        let Some(number) = number.filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
        else {
            return Err(LintFinding::error(
                "invalid-dependency",
                format!(
                    "`depends` contains `{}`, which is not the number of an issue",
                    excerpt(word)
                ),
                "list issues of this repository, such as `depends: [24, 25]`",
            ));
        };
        numbers.insert(number);
    }
    if numbers.len() > MAX_DEPENDENCIES {
        return Err(LintFinding::error(
            "too-many-dependencies",
            format!(
                "the issue depends on {} issues, limit {MAX_DEPENDENCIES}",
                numbers.len()
            ),
            "remove those that follow from others",
        ));
    }
    Ok(numbers)
}

fn list_item(line: &str) -> Option<&str> {
    line.trim().strip_prefix("- ").map(str::trim)
}

fn unquote(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.trim();
        }
    }
    text
}

fn unknown_line(text: &str) -> LintFinding {
    LintFinding::warning(
        "unknown-key",
        format!("the front matter line `{}` is ignored", excerpt(text)),
        "the keys are `branch`, `base` and `depends`",
    )
}

fn duplicate_key(key: &str) -> LintFinding {
    LintFinding::warning(
        "duplicate-key",
        format!("`{key}` is given more than once, and the first one counts"),
        "remove the others",
    )
}
