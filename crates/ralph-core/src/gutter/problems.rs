//! Extracts the problems that a failing command reports: failing tests and errors of compilers,
//! linters and programs.
//!
//! A problem is recognised even if its line number, values or surrounding code have changed, so
//! that the same error in new code counts as a repetition and a different error does not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::failure_signature::{head_chars, tail_chars};
use super::normalisation_rules::{normalise, strip_terminal_controls};
use crate::id::Digest;
use crate::parse_value;

/// The length of the searched part of each stream, in characters.
const MAX_SEARCHED_CHARS: usize = 64 << 10;
/// The most lines with a problem that are read. In output of an unknown format, the most lines that
/// are inspected.
const MAX_LINES: usize = 400;
/// The length to which the text of a problem is truncated, in characters.
const MAX_CHARS: usize = 120;

/// Prefix of the text of a failing test.
const TEST_PREFIX: &str = "test ";

/// A problem reported by a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputProblem {
    /// The name of a failing test, or a file and an error message without numbers.
    pub text: String,
    /// The reported line number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl OutputProblem {
    /// Returns whether the problem is a failing test.
    pub(super) fn is_test(&self) -> bool {
        self.text.starts_with(TEST_PREFIX)
    }

    /// Returns whether both are the same problem, moved by at most `slack` lines.
    pub(super) fn is_same_problem(&self, other: &Self, slack: u64) -> bool {
        let is_near = match (self.line, other.line) {
            (Some(one), Some(other)) => u64::from(one.abs_diff(other)) <= slack,
            (None, _) | (_, None) => true,
        };
        self.text == other.text && is_near
    }
}

/// The problems reported by one failed command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputProblems {
    /// The number of different problems found. The same message at two line numbers counts twice.
    pub count: u32,
    /// At most [`OutputProblems::MAX`] of them, one per text. They are selected by the digests of
    /// their texts, so that later outputs keep the same ones.
    pub kept: Vec<OutputProblem>,
}

impl OutputProblems {
    /// The most problems stored per failure.
    pub const MAX: usize = 8;

    /// Finds the problems in a command's output.
    pub fn find(stderr: &str, stdout: &str) -> Self {
        let stderr = strip_terminal_controls(head_chars(stderr, MAX_SEARCHED_CHARS));
        let stdout = strip_terminal_controls(tail_chars(stdout, MAX_SEARCHED_CHARS));
        let mut search = ProblemSearch::default();
        for line in stderr.lines().chain([""]).chain(stdout.lines()) {
            search.read(line);
            if search.lines >= MAX_LINES {
                break;
            }
        }
        if search.found.is_empty() {
            // No known format: fall back to lines that describe an error specifically enough.
            for line in stderr.lines().chain(stdout.lines()).take(MAX_LINES) {
                search.read_unknown_error(line);
            }
        }
        search.finish()
    }

    /// Returns whether no problem was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// The formats in which test runners report a failing test. The first matching group is the name.
static FAILING_TEST: LazyLock<Regex> = LazyLock::new(|| {
    let forms = [
        r"\b(?:FAILED|ERROR) (\S+::\S+)",
        r"^(?:FAIL|ERROR): (\S+ \([^)]+\))",
        r"^test (\S+) \.\.\. FAILED",
        r"^\s+(?:FAIL|TIMEOUT|SIG[A-Z]+) \[[^\]]*\] (?:\([^)]*\) )?(\S.*)$",
        r"^\s*--- FAIL: (\S+)",
        r"^\s*(?:FAIL\s+|× |✗ )(\S+ > .+?)(?: \d+m?s)?$",
        r"^\s*[✕×✗✖] (.+?)(?: \(\d+ ?m?s\))?$",
        r"^\s*● (.+ › .+)$",
        r"^\s+\d+\) (\S.*?):?$",
        r"^not ok \d+ (?:- )?(.+?)(?: # time.*)?$",
        r"^rspec \S+ # (.+)$",
        r"^(\S+ > .+?) FAILED",
        r"^\[ERROR\]\s+((?:[\w$]+\.)*[A-Z]\w*\.\w+)(?::\d+)?\b",
        r"^\d+\) (\S+::\S+)",
        r"^\s+Failed (\S+) \[",
        r"^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Not Run|Subprocess aborted)\)",
        r"^\[  FAILED  \] ([\w./]+)",
        r"^Test Case '-\[(.+)\]' failed",
    ];
    compile_regex(&forms.join("|"))
});

/// `file:line:column: message` in the formats of compilers and linters.
static LOCATED_MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"^\s*(?:e: |ERROR in |\[ERROR\] |error: )?(?:file://)?([\w@./~+-]+\.\w{1,6})(?::|\(|:\[)(\d+)(?:[:,](\d+))?[\])]?:?\s*(?:-\s*)?(.*)$",
    )
});
/// Messages after a location that are not errors.
static NON_ERROR_MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?i)^(?:\[?warning|warn\b|note|info|help|hint|in function|required from|instantiated|at |in member|W\d)",
    )
});
/// Messages after a location that are errors.
static ERROR_MESSAGE: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?i)error|fatal|fail|undefined|undeclared|unresolved|unexpected|expected|cannot|can't|could not|not found|missing|invalid|mismatch|unknown|unused|redeclared|panic|assert|exception|no such|too many|not enough|^[A-Z]{1,4}\d{2,5}\b",
    )
});
/// The first line of a rustc error; its location follows.
static RUSTC_ERROR: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"^error(?:\[E\d+\])?: ."));
static RUSTC_LOCATION: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"^\s*--> ([^:\s]+):(\d+):\d+"));
static PANIC: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"panicked at (?:'(.*)', )?([^:\s]+):(\d+)(?::\d+)?:?$"));
/// A problem listed below the name of its file, as printed by eslint.
static ESLINT_PROBLEM: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"^\s+(\d+):\d+\s+(?:✖\s+)?error:?\s+(.+)$"));
static FILE_HEADING: LazyLock<Regex> =
    LazyLock::new(|| compile_regex(r"^\s*([\w@./~+-]+\.\w{1,6}):?$"));
static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"^(?:E\s+|\s*(?:Uncaught |Caused by: |fatal: |FATAL: )?)((?:[\w$]+[.:]+)*\w*(?:Error|Exception|Failure|Panic)\b:?.*|panic: .+|(?:fatal|FATAL)[: ].+)$",
    )
});
/// Messages that name a missing item.
static MISSING_ITEM: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?i)(?:undefined reference to|unresolved external symbol|cannot find -l|command not found|: not found$|no such file or directory|permission denied|cannot find module|no module named|connection refused|could not resolve|address already in use|unknown command|unrecognized (?:option|argument)|does not exist|is not defined|is not a function|version conflict|unmet dependenc)",
    )
});
static ANY_ERROR: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r"(?i)\b(?:error|err|fatal|failed|failure|cannot|could not|unable to|invalid|violates|denied|refused)\b",
    )
});
static NUMBER: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"\b\d+(?:\.\d+)*\b"));
static LONG_QUOTE: LazyLock<Regex> = LazyLock::new(|| {
    compile_regex(
        r#"'[^'\n]*\s[^'\n]*'|"[^"\n]*\s[^"\n]*"|`[^`\n]*\s[^`\n]*`|'[^'\n]{41,}'|"[^"\n]{41,}"|`[^`\n]{41,}`"#,
    )
});
static WORD: LazyLock<Regex> = LazyLock::new(|| compile_regex(r"[A-Za-z_][A-Za-z_0-9]{2,}"));

/// Parts of lines that only summarise errors. Some lack a first letter that may be a capital.
const SUMMARIES: &[&str] = &[
    "could not compile",
    "aborting due to",
    "test failed, to rerun",
    "no such command",
    "***",
    "ld returned",
    "ailed with exit",
    "xited with",
    "Lifecycle script",
];
/// The fewest specific words in a message of unknown format.
const MIN_SPECIFIC_WORDS: u32 = 3;
/// Words that do not identify a problem.
const COMMON_WORDS: &[&str] = &[
    "error",
    "errors",
    "failed",
    "failure",
    "exception",
    "assert",
    "assertion",
    "assertionerror",
    "expected",
    "expect",
    "received",
    "actual",
    "got",
    "want",
    "true",
    "false",
    "none",
    "null",
    "equal",
    "equals",
    "the",
    "and",
    "but",
    "was",
    "not",
    "for",
    "with",
    "has",
    "have",
    "are",
    "from",
    "that",
    "build",
    "test",
    "tests",
    "command",
    "process",
    "exit",
    "code",
    "status",
    "fatal",
    "panic",
    "this",
    "message",
    "value",
    "values",
    "compile",
    "compilation",
    "run",
    "running",
    "runtime",
    "npm",
    "err",
    "see",
    "above",
    "more",
    "details",
    "lifecycle",
    "script",
    "output",
    "log",
    "found",
];

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed")
}

#[derive(Default)]
struct ProblemSearch {
    found: BTreeSet<(String, Option<u32>)>,
    /// Number of lines that reported a problem.
    lines: usize,
    /// An error message; its location is on one of the next lines.
    pending: Option<String>,
    /// The location of a panic; its message is on the next line.
    panic: Option<(String, u32)>,
    /// The file to which the next lines refer.
    file: Option<String>,
}

impl ProblemSearch {
    fn read(&mut self, line: &str) {
        if line.len() > 4 * 1024 {
            return;
        }
        if let Some((file, number)) = self.panic.take() {
            self.add(&format!("{file} panicked: {line}"), Some(number));
            return;
        }
        let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte >= 128;
        if !line.bytes().any(is_letter) {
            // Skipped cheaply: rows of numbers are common in long outputs.
            return;
        }
        if let Some(found) = FAILING_TEST.captures(line) {
            let name = found.iter().skip(1).flatten().next();
            self.add_test(name.map_or("", |name| name.as_str()));
        } else if let Some(found) = RUSTC_LOCATION.captures(line) {
            if let Some(message) = self.pending.take() {
                self.add(
                    &format!("{} {message}", &found[1]),
                    captured_number(&found, 2),
                );
            }
        } else if RUSTC_ERROR.is_match(line) {
            self.pending = (!is_summary(line)).then(|| line.to_owned());
        } else if let Some(found) = PANIC.captures(line) {
            match found.get(1) {
                Some(words) => {
                    let text = format!("{} panicked: {}", &found[2], words.as_str());
                    self.add(&text, captured_number(&found, 3));
                }
                None => {
                    self.panic =
                        Some((found[2].to_owned(), captured_number(&found, 3).unwrap_or(0)));
                }
            }
        } else if let Some(found) = ESLINT_PROBLEM.captures(line) {
            let file = self.file.clone().unwrap_or_default();
            self.add(&format!("{file} {}", &found[2]), captured_number(&found, 1));
        } else {
            self.read_message(line);
        }
    }

    fn read_message(&mut self, line: &str) {
        if let Some(found) = LOCATED_MESSAGE.captures(line) {
            let message = found.get(4).map_or("", |message| message.as_str());
            let is_error =
                ERROR_MESSAGE.is_match(message) || (is_go(&found[1]) && message.contains(' '));
            if is_error && !NON_ERROR_MESSAGE.is_match(message) {
                self.add(
                    &format!("{} {message}", &found[1]),
                    captured_number(&found, 2),
                );
                return;
            }
        }
        if let Some(found) = FILE_HEADING.captures(line) {
            self.file = Some(found[1].to_owned());
        } else if let Some(found) = EXCEPTION.captures(line) {
            if is_specific(&found[1], MIN_SPECIFIC_WORDS) {
                self.add(&found[1], None);
            }
        } else if MISSING_ITEM.is_match(line) && is_specific(line, 1) {
            self.add(line.trim(), None);
        }
    }

    fn read_unknown_error(&mut self, line: &str) {
        if line.len() <= 4 * 1024
            && !is_summary(line)
            && ANY_ERROR.is_match(line)
            && is_specific(line, MIN_SPECIFIC_WORDS)
        {
            self.add(line, None);
        }
    }

    fn add(&mut self, text: &str, line: Option<u32>) {
        self.lines += 1;
        self.insert(generalize(text), line);
    }

    /// Adds a failing test, including the digits in its name.
    fn add_test(&mut self, name: &str) {
        self.lines += 1;
        let name = format!("{TEST_PREFIX}{}", normalise(name.trim()));
        self.insert(head_chars(&name, MAX_CHARS).to_owned(), None);
    }

    fn insert(&mut self, text: String, line: Option<u32>) {
        if !text.trim().is_empty() {
            self.found.insert((text, line));
        }
    }

    fn finish(self) -> OutputProblems {
        let count = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        let mut first: BTreeMap<String, Option<u32>> = BTreeMap::new();
        for (text, line) in self.found {
            first.entry(text).or_insert(line);
        }
        let mut kept: Vec<OutputProblem> = first
            .into_iter()
            .map(|(text, line)| OutputProblem { text, line })
            .collect();
        if kept.len() > OutputProblems::MAX {
            kept.sort_by_cached_key(|problem| {
                Digest::compute(problem.text.as_bytes()).as_str().to_owned()
            });
            kept.truncate(OutputProblems::MAX);
        }
        OutputProblems { count, kept }
    }
}

fn is_summary(line: &str) -> bool {
    SUMMARIES.iter().any(|part| line.contains(part))
}

/// Returns whether a file is Go source; the Go compiler does not mark messages as errors.
fn is_go(path: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, extension)| extension == "go")
}

fn captured_number(found: &Captures<'_>, group: usize) -> Option<u32> {
    parse_value(found.get(group)?.as_str())
}

/// Replaces numbers, long quotations and random parts of a message.
fn generalize(text: &str) -> String {
    let text = normalise(text.trim());
    let text = LONG_QUOTE.replace_all(&text, "'…'");
    let text = NUMBER.replace_all(&text, "#");
    head_chars(&text, MAX_CHARS).to_owned()
}

/// Returns whether a message has enough words to distinguish it from similar messages.
fn is_specific(text: &str, least: u32) -> bool {
    let mut words = 0;
    for word in WORD.find_iter(text) {
        let word = word.as_str().to_ascii_lowercase();
        words += u32::from(!COMMON_WORDS.contains(&word.as_str()));
    }
    words >= least
}
