//! What is really started for a program, and what it reads.

use std::process::Stdio;

use serde::{Deserialize, Serialize};

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
/// A shell first reads one line, which it gets after its process was marked: whatever it starts
/// then inherits the mark. Any other program is started as it is; it takes longer to load than to
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
    pub fn new(program: Program, input: Input) -> Self {
        let line = match program {
            Program::Argv(argv) => {
                return Self {
                    argv,
                    opening: b"",
                    input,
                };
            }
            Program::Shell(line) => line,
        };
        // On the same line, so that the shell counts lines as the caller does.
        let line = match input {
            Input::Nothing => format!("read -r _; exec 0</dev/null; {line}"),
            Input::Piped => format!("read -r _; {line}"),
        };
        Self {
            argv: vec!["sh".into(), "-c".into(), line],
            opening: b"\n",
            input,
        }
    }

    /// Returns what the input of the process is.
    pub fn stdin(&self) -> Stdio {
        if self.opening.is_empty() && self.input == Input::Nothing {
            Stdio::null()
        } else {
            Stdio::piped()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_waits_for_a_line() {
        let lines = [
            (Input::Nothing, "read -r _; exec 0</dev/null; ls"),
            (Input::Piped, "read -r _; ls"),
        ];
        for (input, line) in lines {
            assert_eq!(
                Invocation::new(Program::Shell("ls".into()), input),
                Invocation {
                    argv: ["sh", "-c", line].map(Into::into).into(),
                    opening: b"\n",
                    input,
                }
            );
        }
    }

    #[test]
    fn a_program_is_started_as_it_is() {
        let argv = vec!["git".to_owned(), "status".to_owned()];
        assert_eq!(
            Invocation::new(Program::Argv(argv.clone()), Input::Nothing),
            Invocation {
                argv,
                opening: b"",
                input: Input::Nothing,
            }
        );
    }
}
