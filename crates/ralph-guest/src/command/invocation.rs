//! What is really started for a program, and what it reads.

use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::mark::Marking;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A command line for `sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// Whether a command reads something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMode {
    /// It reads from nothing.
    Null,
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
    pub preamble: &'static [u8],
    /// Whether anything else is written. A command that reads nothing gets no pipe: programs such
    /// as `rg` would read a pipe instead of the directory.
    pub input: InputMode,
}

impl Invocation {
    /// Returns how a program is started.
    pub fn new(program: CommandLine, input: InputMode, marking: Marking) -> Self {
        // On the same line, so that the shell counts lines as the caller does.
        let (argv, opening) = match (program, marking, input) {
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
            preamble: opening,
            input,
        }
    }

    /// Returns the same with another command line.
    #[must_use]
    pub fn with_argv(&self, argv: Vec<String>) -> Self {
        Self {
            argv,
            preamble: self.preamble,
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
        !self.preamble.is_empty() || self.input == InputMode::Piped
    }
}

/// The line that a shell waits for.
const PREAMBLE: &[u8] = b"\n";

fn shell_argv(line: String) -> Vec<String> {
    vec!["sh".into(), "-c".into(), line]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_marked_after_spawning_waits_for_a_line() {
        let (waits, at_once) = (Marking::AfterSpawn, Marking::Inherited);
        for (input, marking, line, opening) in [
            (
                InputMode::Null,
                waits,
                "read -r _; exec 0</dev/null; ls",
                &b"\n"[..],
            ),
            (InputMode::Piped, waits, "read -r _; ls", b"\n"),
            (InputMode::Null, at_once, "ls", b""),
            (InputMode::Piped, at_once, "ls", b""),
            (InputMode::Null, Marking::ByLauncher, "ls", b""),
        ] {
            assert_eq!(
                Invocation::new(CommandLine::Shell("ls".into()), input, marking),
                Invocation {
                    argv: ["sh", "-c", line].map(Into::into).into(),
                    preamble: opening,
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
