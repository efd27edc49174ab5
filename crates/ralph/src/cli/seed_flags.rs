//! The flags `--issue N` and `--poll` without a command.

use std::ffi::{OsStr, OsString};

/// The flags that may surround them, and whether they have a value.
const FLAGS: [(&str, bool); 9] = [
    ("--issue", true),
    ("--poll", false),
    ("--interval", true),
    ("--timeout", true),
    ("--agent", true),
    ("--model", true),
    ("--push", false),
    ("--rebuild", false),
    ("--json", false),
];

/// Returns the arguments with the command `issue` or `poll` instead of these flags. Arguments with a command stay
/// as they are.
pub(super) fn command_for_flags(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut rest: Vec<OsString> = Vec::new();
    let mut polls = false;
    let mut number: Option<Option<OsString>> = None;
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        let Some((flag, value)) = known_flag(word) else {
            // A command, or a flag that these two do not have.
            return arguments;
        };
        match flag {
            "--poll" => polls = true,
            "--issue" => number = Some(value.or_else(|| words.next().cloned())),
            _ => {
                rest.push(word.clone());
                if value.is_none() && FLAGS.contains(&(flag, true)) {
                    rest.extend(words.next().cloned());
                }
            }
        }
    }
    let command: Vec<OsString> = match (polls, number) {
        (false, None) => return arguments,
        (false, Some(number)) => std::iter::once("issue".into()).chain(number).collect(),
        // `poll` rejects `--issue`.
        (true, Some(_)) => vec!["poll".into(), "--issue".into()],
        (true, None) => vec!["poll".into()],
    };
    arguments
        .into_iter()
        .take(1)
        .chain(command)
        .chain(rest)
        .collect()
}

/// Returns a known flag and the value after `=`.
fn known_flag(word: &OsStr) -> Option<(&'static str, Option<OsString>)> {
    let word = word.to_str()?;
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(OsString::from(value))),
        None => (word, None),
    };
    let (flag, has_value) = FLAGS.into_iter().find(|(flag, _)| *flag == name)?;
    (has_value || value.is_none()).then_some((flag, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_without_a_command_name_one() {
        for (typed, expected) in [
            ("", ""),
            ("--issue 24", "issue 24"),
            ("--issue=24 --rebuild", "issue 24 --rebuild"),
            (
                "--agent claude --model sonnet --issue 24 --push",
                "issue 24 --agent claude --model sonnet --push",
            ),
            ("--poll", "poll"),
            (
                "--poll --interval 1m --timeout=4h",
                "poll --interval 1m --timeout=4h",
            ),
            ("--rebuild --poll", "poll --rebuild"),
            ("--timeout=4h --json --poll", "poll --timeout=4h --json"),
            (
                "--poll --rebuild --timeout 4h",
                "poll --rebuild --timeout 4h",
            ),
            (
                "--push --rebuild --issue 24 --json",
                "issue 24 --push --rebuild --json",
            ),
            // Rejected by the commands.
            ("--issue", "issue"),
            ("--poll --issue 24", "poll --issue"),
            ("--issue 24 --interval 1m", "issue 24 --interval 1m"),
            ("--poll --interval", "poll --interval"),
            // Not of these two.
            ("--interval 1m", "--interval 1m"),
            ("--rebuild", "--rebuild"),
            ("run --poll", "run --poll"),
            (
                "--agent claude check-token --issue 24",
                "--agent claude check-token --issue 24",
            ),
            ("--poll=yes", "--poll=yes"),
        ] {
            let words = |text: &str| -> Vec<OsString> {
                let words = text.split_whitespace().map(OsString::from);
                std::iter::once("ralph".into()).chain(words).collect()
            };
            assert_eq!(command_for_flags(words(typed)), words(expected), "{typed}");
        }
    }
}
