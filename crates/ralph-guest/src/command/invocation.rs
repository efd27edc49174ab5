//! The process arguments and input of a command.

use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::mark::Marking;

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// Whether a command receives input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMode {
    /// Standard input is empty.
    Null,
    /// Standard input is a pipe.
    Piped,
}

/// A command line and the start of its input.
///
/// A shell that is marked after its start first reads one line, which is sent once it is marked, so
/// that everything it starts inherits the mark. Other programs start directly, because marking them
/// is faster than loading them.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The bytes written to the input first.
    pub preamble: &'static [u8],
    /// Whether more input follows. A command without input gets no pipe, because programs such as
    /// `rg` would read a pipe instead of the directory.
    pub input: InputMode,
}

impl Invocation {
    /// Returns the invocation of a command line.
    pub fn new(program: CommandLine, input: InputMode, marking: Marking) -> Self {
        // On the same line, so that line numbers in shell errors stay correct.
        let (argv, preamble) = match (program, marking, input) {
            (CommandLine::Argv(argv), _, _) => (argv, &b""[..]),
            (CommandLine::Shell(line), Marking::Inherited | Marking::ByLauncher, _) => {
                (shell_argv(line), &b""[..])
            }
            (CommandLine::Shell(line), Marking::AfterSpawn, InputMode::Null) => (
                shell_argv(format!("read -r _; exec 0</dev/null; {line}")),
                PREAMBLE,
            ),
            (CommandLine::Shell(line), Marking::AfterSpawn, InputMode::Piped) => {
                (shell_argv(format!("read -r _; {line}")), PREAMBLE)
            }
        };
        Self {
            argv,
            preamble,
            input,
        }
    }

    /// Returns the same invocation with another command line.
    #[must_use]
    pub fn with_argv(&self, argv: Vec<String>) -> Self {
        Self {
            argv,
            preamble: self.preamble,
            input: self.input,
        }
    }

    /// Returns the standard input of the process.
    pub fn stdin(&self) -> Stdio {
        if self.needs_pipe() {
            Stdio::piped()
        } else {
            Stdio::null()
        }
    }

    /// Returns whether standard input is a pipe.
    pub(super) fn needs_pipe(&self) -> bool {
        !self.preamble.is_empty() || self.input == InputMode::Piped
    }
}

/// The line that a marked shell waits for.
const PREAMBLE: &[u8] = b"\n";

fn shell_argv(line: String) -> Vec<String> {
    vec!["sh".into(), "-c".into(), line]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_marked_after_spawning_waits_for_a_line() {
        let (waits, starts_directly) = (Marking::AfterSpawn, Marking::Inherited);
        for (input, marking, line, preamble) in [
            (
                InputMode::Null,
                waits,
                "read -r _; exec 0</dev/null; ls",
                &b"\n"[..],
            ),
            (InputMode::Piped, waits, "read -r _; ls", b"\n"),
            (InputMode::Null, starts_directly, "ls", b""),
            (InputMode::Piped, starts_directly, "ls", b""),
            (InputMode::Null, Marking::ByLauncher, "ls", b""),
        ] {
            assert_eq!(
                Invocation::new(CommandLine::Shell("ls".into()), input, marking),
                Invocation {
                    argv: ["sh", "-c", line].map(Into::into).into(),
                    preamble,
                    input,
                }
            );
        }
    }

    #[test]
    fn a_program_is_started_without_a_shell() {
        let argv = vec!["git".to_owned(), "status".to_owned()];
        assert_eq!(
            Invocation::new(
                CommandLine::Argv(argv.clone()),
                InputMode::Null,
                Marking::AfterSpawn
            ),
            Invocation {
                argv,
                preamble: b"",
                input: InputMode::Null,
            }
        );
    }
}
