//! Computes a signature of a failure that is stable across repetitions.

use super::normalisation_rules::normalise;
use crate::id::Digest;

/// The length of the normalised output in a signature, in characters.
const MAX_SIGNATURE_CHARS: usize = 2000;
/// The length of the output that is normalised, in characters. Normalisation shortens it.
const MAX_INSPECTED_CHARS: usize = 4 * MAX_SIGNATURE_CHARS;

/// Returns the digest of a failure: the command, its exit code and the start of its standard error,
/// or the end of its standard output if standard error is empty. Ignores colours, times, durations,
/// addresses, temporary paths, process ids, ports, seeds, progress output and the order of lines.
pub fn signature(command: &str, exit_code: i32, stderr: &str, stdout: &str) -> Digest {
    let text = if stderr.trim().is_empty() {
        let clean = normalise(tail_chars(stdout, MAX_INSPECTED_CHARS));
        sort_lines(tail_chars(clean.trim(), MAX_SIGNATURE_CHARS))
    } else {
        let clean = normalise(head_chars(stderr, MAX_INSPECTED_CHARS));
        sort_lines(head_chars(clean.trim(), MAX_SIGNATURE_CHARS))
    };
    let command = normalise(head_chars(command, MAX_INSPECTED_CHARS));
    Digest::compute(format!("{command}\0{exit_code}\0{text}").as_bytes())
}

pub(super) fn head_chars(text: &str, chars: usize) -> &str {
    text.char_indices()
        .nth(chars)
        .map_or(text, |(end, _)| &text[..end])
}

pub(super) fn tail_chars(text: &str, chars: usize) -> &str {
    // A character has at most four bytes, so earlier text need not be counted.
    let from = text.floor_char_boundary(text.len().saturating_sub(4 * chars));
    let near = &text[from..];
    let skipped = near.chars().count().saturating_sub(chars);
    near.char_indices()
        .nth(skipped)
        .map_or("", |(start, _)| &near[start..])
}

/// Sorts the lines of an output, because parallel tests print them in any order. An indented line
/// stays with the line above it, and so does the line after a colon: "expected 3, received 4" over
/// four lines differs from "expected 4, received 3".
fn sort_lines(text: &str) -> String {
    let mut groups: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let continues = line.starts_with([' ', '\t'])
            || groups.last().is_some_and(|group| group.ends_with(':'));
        match groups.last_mut().filter(|_| continues) {
            Some(group) => {
                group.push('\n');
                group.push_str(line);
            }
            None => groups.push(line.to_owned()),
        }
    }
    groups.sort_unstable();
    groups.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_parts_are_removed() {
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
            assert_eq!(normalise(text), expected, "{text:?}");
        }
    }

    #[test]
    fn signatures_depend_on_command_exit_code_and_output() {
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
    fn the_end_of_stdout_is_used_if_stderr_is_empty() {
        let long = |last: &str| format!("{}{last}", "line\n".repeat(5000));
        let sign = |stdout: &str| signature("t", 1, " \n", stdout);
        assert_eq!(
            sign(&long("2 failed")),
            sign(&format!("more {}", long("2 failed")))
        );
        assert_ne!(sign(&long("2 failed")), sign(&long("1 failed")));
    }

    #[test]
    fn only_the_start_of_stderr_is_used() {
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
