//! What is really started for a program, and what it reads.

use std::process::Stdio;

use ralph_core::ports::Program;

/// A command line and its input.
///
/// A shell first reads one line, which it gets after its process was marked: whatever it starts
/// then inherits the mark. Any other program is started as it is; it takes longer to load than to
/// be marked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) argv: Vec<String>,
    /// What is written to its input. Without anything the input is no pipe: programs such as `rg`
    /// would read a pipe instead of the directory.
    pub(super) input: Vec<u8>,
}

impl Invocation {
    pub(super) fn new(program: Program, input: Vec<u8>) -> Self {
        let line = match program {
            Program::Argv(argv) => return Self { argv, input },
            Program::Shell(line) => line,
        };
        // On the same line, so that the shell counts lines as the caller does.
        let line = if input.is_empty() {
            format!("read -r _; exec 0</dev/null; {line}")
        } else {
            format!("read -r _; {line}")
        };
        let mut gated = Vec::with_capacity(input.len() + 1);
        gated.push(b'\n');
        gated.extend(input);
        Self {
            argv: vec!["sh".into(), "-c".into(), line],
            input: gated,
        }
    }

    /// Returns what the input of the process is.
    pub(super) fn stdin(&self) -> Stdio {
        if self.input.is_empty() {
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
        let shell = |input: &[u8]| Invocation::new(Program::Shell("ls".into()), input.into());
        let invocation = |line: &str, input: &[u8]| Invocation {
            argv: ["sh", "-c", line].map(Into::into).into(),
            input: input.into(),
        };
        assert_eq!(
            shell(b""),
            invocation("read -r _; exec 0</dev/null; ls", b"\n")
        );
        assert_eq!(shell(b"text"), invocation("read -r _; ls", b"\ntext"));
    }

    #[test]
    fn a_program_is_started_as_it_is() {
        let argv = vec!["git".to_owned(), "status".to_owned()];
        assert_eq!(
            Invocation::new(Program::Argv(argv.clone()), Vec::new()),
            Invocation {
                argv,
                input: Vec::new(),
            }
        );
    }
}
