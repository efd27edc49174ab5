//! What is really started for a program, and what it reads.

use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::mark::Marking;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// Whether a command reads something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// It reads from nothing.
    Nothing,
    /// It reads what is written to it.
    Piped,
}

/// A command line and how its input begins.
///
/// A shell that is marked afterwards first reads one line, which it gets then: whatever it starts
/// later inherits the mark. Any other program is started as it is; it takes longer to load than to
/// be marked.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What is written to its input before anything else.
    pub opening: &'static [u8],
    /// Whether anything else is written. A command that reads nothing gets no pipe: programs such
    /// as `rg` would read a pipe instead of the directory.
    pub input: Input,
}

impl Invocation {
    /// Returns how a program is started.
    pub fn new(program: Program, input: Input, marking: Marking) -> Self {
        // On the same line, so that the shell counts lines as the caller does.
        let (argv, opening) = match (program, marking, input) {
            (Program::Argv(argv), _, _) => (argv, &b""[..]),
            (Program::Shell(line), Marking::AtBirth | Marking::ByLauncher, _) => {
                (shell(line), &b""[..])
            }
            (Program::Shell(line), Marking::Afterwards, Input::Nothing) => (
                shell(format!("read -r _; exec 0</dev/null; {line}")),
                OPENING,
            ),
            (Program::Shell(line), Marking::Afterwards, Input::Piped) => {
                (shell(format!("read -r _; {line}")), OPENING)
            }
        };
        Self {
            argv,
            opening,
            input,
        }
    }

    /// Returns the same with another command line.
    #[must_use]
    pub fn with_argv(&self, argv: Vec<String>) -> Self {
        Self {
            argv,
            opening: self.opening,
            input: self.input,
        }
    }

    /// Returns what the input of the process is.
    pub fn stdin(&self) -> Stdio {
        if self.needs_pipe() {
            Stdio::piped()
        } else {
            Stdio::null()
        }
    }

    /// Returns whether the input of the process is a pipe.
    pub(super) fn needs_pipe(&self) -> bool {
        !self.opening.is_empty() || self.input == Input::Piped
    }
}

/// The line that a shell waits for.
const OPENING: &[u8] = b"\n";

fn shell(line: String) -> Vec<String> {
    vec!["sh".into(), "-c".into(), line]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_marked_afterwards_waits_for_a_line() {
        let (waits, at_once) = (Marking::Afterwards, Marking::AtBirth);
        for (input, marking, line, opening) in [
            (
                Input::Nothing,
                waits,
                "read -r _; exec 0</dev/null; ls",
                &b"\n"[..],
            ),
            (Input::Piped, waits, "read -r _; ls", b"\n"),
            (Input::Nothing, at_once, "ls", b""),
            (Input::Piped, at_once, "ls", b""),
            (Input::Nothing, Marking::ByLauncher, "ls", b""),
        ] {
            assert_eq!(
                Invocation::new(Program::Shell("ls".into()), input, marking),
                Invocation {
                    argv: ["sh", "-c", line].map(Into::into).into(),
                    opening,
                    input,
                }
            );
        }
    }

    #[test]
    fn a_program_is_started_as_it_is() {
        let argv = vec!["git".to_owned(), "status".to_owned()];
        assert_eq!(
            Invocation::new(
                Program::Argv(argv.clone()),
                Input::Nothing,
                Marking::Afterwards
            ),
            Invocation {
                argv,
                opening: b"",
                input: Input::Nothing,
            }
        );
    }
}
