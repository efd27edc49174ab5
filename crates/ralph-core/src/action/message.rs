//! Commit messages: cleans the model's text and recognises the runner's trailers.

use std::fmt;

use super::limits::MAX_MESSAGE_BYTES;
use super::text::truncate_bytes;

/// A trailer that only the runner writes, and by which it recognises its own commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerTrailer {
    /// `Ralph-Action`: the run, the iteration and the index of the commit action.
    Action(String),
    /// `Ralph-Run`: the run.
    Run(String),
}

impl fmt::Display for RunnerTrailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action(value) => write!(f, "Ralph-Action: {value}"),
            Self::Run(value) => write!(f, "Ralph-Run: {value}"),
        }
    }
}

/// Replaces a commit message that is empty after cleaning.
const FALLBACK: &str = "Work in progress";

/// Cleans a commit message: removes control characters, lines that imitate the runner's trailers,
/// spaces at line ends and blank lines at both ends, then truncates it. Never returns an empty
/// message.
pub fn clean_message(text: &str) -> String {
    let printable: String = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    let lines: Vec<&str> = printable
        .lines()
        .map(str::trim_end)
        .filter(|line| runner_trailer(line).is_none())
        .collect();
    let joined = lines.join("\n");
    let message = truncate_bytes(joined.trim_matches('\n'), MAX_MESSAGE_BYTES).trim_end();
    if message.is_empty() {
        FALLBACK.to_owned()
    } else {
        message.to_owned()
    }
}

/// Parses a line of a commit message as one of the runner's trailers.
pub fn runner_trailer(line: &str) -> Option<RunnerTrailer> {
    // git allows spaces between a trailer's name and its colon.
    let (name, value) = line.split_once(':')?;
    let value = value.trim().to_owned();
    match name.trim().to_ascii_lowercase().as_str() {
        "ralph-action" => Some(RunnerTrailer::Action(value)),
        "ralph-run" => Some(RunnerTrailer::Run(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cleaned() {
        for (text, message) in [
            ("Fix health endpoint", "Fix health endpoint"),
            ("Title\n\n\tbody  \n\n\n", "Title\n\n\tbody"),
            ("\n\n  Title\r\nbody\r\n", "  Title\nbody"),
            ("a\0b\u{1b}[31mc\u{7}\u{9b}", "ab[31mc"),
            ("Fix\n\nRalph-Action: r/1/0", "Fix"),
            ("Fix\n  ralph-RUN : x\nmore", "Fix\nmore"),
            ("Fix\nRalph\0-Action: x", "Fix"),
            ("Fix\rRalph-Run: x", "FixRalph-Run: x"),
            ("Ralph-Action: x\nRALPH-RUN:", "Work in progress"),
            ("Say why Ralph-Run: is set", "Say why Ralph-Run: is set"),
            ("Ralph-Action is a trailer", "Ralph-Action is a trailer"),
            ("Co-authored-by: A <a@b>", "Co-authored-by: A <a@b>"),
            ("", "Work in progress"),
            (" \n\t\n \0", "Work in progress"),
        ] {
            assert_eq!(clean_message(text), message, "{text:?}");
        }
    }

    #[test]
    fn a_long_message_is_truncated_between_characters() {
        let long = "é".repeat(MAX_MESSAGE_BYTES);
        assert_eq!(clean_message(&long), "é".repeat(MAX_MESSAGE_BYTES / 2));
        let blank_at_the_cut = format!("{} b", "a".repeat(MAX_MESSAGE_BYTES - 1));
        assert_eq!(
            clean_message(&blank_at_the_cut),
            "a".repeat(MAX_MESSAGE_BYTES - 1)
        );
    }
}
