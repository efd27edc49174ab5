//! Standard output and standard error of the reading commands.

use std::io::{self, Write};

use ralph_core::printable;
use serde::Serialize;

use super::error::CliError;
use crate::terminal::StdoutStyle;
use crate::terminal::styled_line::{Colour, StyledLine};

/// Whether whoever reads standard output is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdoutReader {
    /// It is.
    Connected,
    /// It is not: `ralph logs last | head` has seen enough. That is no error.
    Disconnected,
}

/// Where commands print.
#[derive(Debug, Clone, Copy)]
pub struct CliOutput {
    look: StdoutStyle,
}

impl CliOutput {
    /// Prints with this look.
    pub fn new(look: StdoutStyle) -> Self {
        Self { look }
    }

    /// Returns the look.
    pub fn look(self) -> StdoutStyle {
        self.look
    }

    /// Prints lines for people.
    pub fn print_lines<'a>(
        self,
        lines: impl IntoIterator<Item = &'a StyledLine>,
    ) -> Result<StdoutReader, CliError> {
        let columns = self.look.columns();
        let text: String = lines
            .into_iter()
            .map(|line| line.render(self.look.colour(), columns) + "\n")
            .collect();
        self.print_text(&text)
    }

    /// Prints a value as JSON in one line.
    pub fn print_json(self, value: &impl Serialize) -> Result<StdoutReader, CliError> {
        // Our own types always serialize.
        let line = serde_json::to_string(value).unwrap_or_default();
        self.print_text(&format!("{}\n", printable::escape_json(&line)))
    }

    /// Prints text as it is. It must be safe for a terminal.
    pub fn print_text(self, text: &str) -> Result<StdoutReader, CliError> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(StdoutReader::Connected),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(StdoutReader::Disconnected)
            }
            Err(error) => Err(CliError::runtime(
                "cannot write to standard output",
                error.to_string(),
                "look where it goes to",
            )),
        }
    }

    /// Prints lines on standard error.
    pub fn print_stderr_lines<'a>(self, lines: impl IntoIterator<Item = &'a StyledLine>) {
        for line in lines {
            // There is nobody left to tell when this does not work.
            writeln!(io::stderr(), "{}", line.render(Colour::Unused, None)).ok();
        }
    }

    /// Prints an error where people see it, and for scripts also where they read.
    pub fn print_error(self, error: &CliError, is_json: bool) {
        // There is nobody left to tell when this does not work.
        writeln!(io::stderr(), "{error}").ok();
        if is_json {
            self.print_json(&error.json()).ok();
        }
    }
}
