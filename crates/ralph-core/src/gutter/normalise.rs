//! What a failure looks like, without what differs from one time to the next.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::id::Digest;

/// How much of an output counts, in characters.
const CHARS: usize = 2000;
/// How much of an output is looked at: what is taken out must not make room without end.
const LOOKED_AT: usize = 4 * CHARS;

/// Returns the digest of a failure: the command, its exit code and the beginning of its error output,
/// or the end of its output where there is none. Colours, times, durations, addresses, temporary
/// paths and process ids do not count.
pub fn signature(command: &str, exit_code: i32, stderr: &str, stdout: &str) -> Digest {
    let text = if stderr.trim().is_empty() {
        let clean = normalised(end(stdout, LOOKED_AT));
        end(clean.trim(), CHARS).to_owned()
    } else {
        let clean = normalised(beginning(stderr, LOOKED_AT));
        beginning(clean.trim(), CHARS).to_owned()
    };
    Digest::of(format!("{command}\0{exit_code}\0{text}").as_bytes())
}

fn beginning(text: &str, chars: usize) -> &str {
    text.char_indices()
        .nth(chars)
        .map_or(text, |(end, _)| &text[..end])
}

fn end(text: &str, chars: usize) -> &str {
    // A character has at most four bytes: nothing before that has to be counted.
    let from = text.floor_char_boundary(text.len().saturating_sub(4 * chars));
    let near = &text[from..];
    let skipped = near.chars().count().saturating_sub(chars);
    near.char_indices()
        .nth(skipped)
        .map_or("", |(start, _)| &near[start..])
}

/// What is replaced by what, in this order.
static RULES: LazyLock<Vec<(Regex, &'static str)>> =
    LazyLock::new(|| {
        [
        (r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])", ""),
        (r"\r+\n?", "\n"),
        (r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uuid>"),
        (
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|\s?[+-]\d\d:?\d\d)?",
            "<time>",
        ),
        (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
        (
            r"(?i)\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|secs?|seconds?|mins?|minutes?|hours?|s|m|h)\b",
            "<duration>",
        ),
        (r"\b0x[0-9a-fA-F]+\b", "<hex>"),
        (r"(?i)\b(pid|tid|process|thread)([ =:#]*)\d+\b", "$1$2<pid>"),
        (r"==\d+==", "==<pid>=="),
        (r"(\w)\[\d{2,}\]", "$1[<pid>]"),
        (r"[ \t]+(\n|$)", "$1"),
    ]
    .into_iter()
    .map(|(pattern, with)| (Regex::new(pattern).expect("the pattern is fixed"), with))
    .collect()
    });

static TEMPORARY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"((?:/private)?(?:/var)?/tmp|/var/folders|/dev/shm)/[^/\s:'"`()\[\]]+((?:/[^/\s:'"`()\[\]]+)*)"#)
        .expect("the pattern is fixed")
});

static HEXADECIMAL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,64}\b").expect("the pattern is fixed"));

fn normalised(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for (pattern, with) in RULES.iter() {
        if let Cow::Owned(changed) = pattern.replace_all(&text, *with) {
            text = Cow::Owned(changed);
        }
    }
    let text = TEMPORARY.replace_all(&text, |found: &Captures<'_>| {
        // The name after the directory is chance; further on only numbers are.
        let rest: String = found[2].chars().filter(|c| !c.is_ascii_digit()).collect();
        format!("{}/<tmp>{rest}", &found[1])
    });
    HEXADECIMAL
        .replace_all(&text, |found: &Captures<'_>| {
            // A word may consist of these letters alone; a digest does not.
            let has_digit = found[0].bytes().any(|byte| byte.is_ascii_digit());
            if has_digit {
                "<hex>".to_owned()
            } else {
                found[0].to_owned()
            }
        })
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_chance_is_taken_out() {
        for (text, expected) in [
            ("\u{1b}[31mred\u{1b}[0m\r\nx", "red\nx"),
            (
                "at 2026-03-01T10:00:00.123Z it failed",
                "at <time> it failed",
            ),
            ("[10:00:01] failed", "[<time>] failed"),
            (
                "took 1.25s, then 300 ms",
                "took <duration>, then <duration>",
            ),
            ("object 0x7ffe12 at deadbeef12", "object <hex> at <hex>"),
            ("id 6fa459ea-ee8a-3ca4-894e-db77e160355e", "id <uuid>"),
            (
                "/tmp/abc123/pytest-12/test_x0/a.txt:3: no",
                "/tmp/<tmp>/pytest-/test_x/a.txt:3: no",
            ),
            (
                "npm[4242]: pid=77 ==88== process 99",
                "npm[<pid>]: pid=<pid> ==<pid>== process <pid>",
            ),
            ("effaced defaced", "effaced defaced"),
            (
                "src/a.rs:12:34: 3 tests failed",
                "src/a.rs:12:34: 3 tests failed",
            ),
        ] {
            assert_eq!(normalised(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_failure_is_its_command_code_and_words() {
        let one = signature("npm test", 1, "error at 10:00:01\n", "anything");
        assert_eq!(one, signature("npm test", 1, "error at 10:00:59", "else"));
        for other in [
            signature("npm run", 1, "error at 10:00:01", ""),
            signature("npm test", 2, "error at 10:00:01", ""),
            signature("npm test", 1, "another error", ""),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn without_error_output_the_end_of_the_output_counts() {
        let long = |last: &str| format!("{}{last}", "line\n".repeat(5000));
        let of = |stdout: &str| signature("t", 1, " \n", stdout);
        assert_eq!(
            of(&long("2 failed")),
            of(&format!("more {}", long("2 failed")))
        );
        assert_ne!(of(&long("2 failed")), of(&long("1 failed")));
    }

    #[test]
    fn only_the_beginning_of_the_error_output_counts() {
        let long = |last: &str| format!("{}{last}", "é".repeat(2000));
        assert_eq!(
            signature("t", 1, &long("a"), ""),
            signature("t", 1, &long("b"), "")
        );
        let short = |last: &str| format!("{}{last}", "é".repeat(1999));
        assert_ne!(
            signature("t", 1, &short("a"), ""),
            signature("t", 1, &short("b"), "")
        );
    }
}
