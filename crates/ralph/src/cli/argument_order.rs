//! Options before the command: `ralph --agent claude check-token`.

use std::ffi::{OsStr, OsString};

/// The permitted options, each with a value.
const LEADING_OPTIONS: [&str; 2] = ["--agent", "--auth"];

/// Returns the arguments with the command first, if only such options precede it.
pub(super) fn command_first(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut position = 1;
    while let Some(length) = arguments
        .get(position)
        .and_then(|word| leading_option_words(word))
    {
        position += length;
    }
    let is_command = |word: &OsString| !word.as_encoded_bytes().starts_with(b"-");
    if position == 1 || !arguments.get(position).is_some_and(is_command) {
        return arguments;
    }
    let mut ordered = arguments;
    ordered[1..=position].rotate_right(1);
    ordered
}

/// Returns the number of words of a leading option, or `None` for another word.
fn leading_option_words(word: &OsStr) -> Option<usize> {
    let word = word.to_str()?;
    LEADING_OPTIONS
        .iter()
        .find_map(|option| match word.strip_prefix(option)? {
            "" => Some(2),
            value => value.starts_with('=').then_some(1),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_follow_its_options() {
        for (typed, expected) in [
            ("", ""),
            ("check-token --agent a", "check-token --agent a"),
            ("--agent a check-token", "check-token --agent a"),
            (
                "--agent=a --auth oauth check-token --x",
                "check-token --agent=a --auth oauth --x",
            ),
            ("--agent", "--agent"),
            ("--agent a", "--agent a"),
            ("--agent a --help", "--agent a --help"),
            ("--agents a check-token", "--agents a check-token"),
            ("--help check-token", "--help check-token"),
        ] {
            let words = |text: &str| -> Vec<OsString> {
                let words = text.split_whitespace().map(OsString::from);
                std::iter::once("ralph".into()).chain(words).collect()
            };
            assert_eq!(command_first(words(typed)), words(expected), "{typed}");
        }
    }
}
