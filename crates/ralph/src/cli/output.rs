//! Standard output and standard error of the reading commands.

use std::io::{self, Write};

use ralph_core::printable;
use serde::Serialize;

use super::error::CliError;
use crate::terminal::Look;
use crate::terminal::line::{Colour, Line};

/// Whether whoever reads standard output is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// It is.
    There,
    /// It is not: `ralph logs last | head` has seen enough. That is no error.
    Gone,
}

/// Where commands print.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    look: Look,
}

impl Output {
    /// Prints with this look.
    pub fn new(look: Look) -> Self {
        Self { look }
    }

    /// Returns the look.
    pub fn look(self) -> Look {
        self.look
    }

    /// Prints lines for people.
    pub fn lines<'a>(self, lines: impl IntoIterator<Item = &'a Line>) -> Result<Reader, CliError> {
        let columns = self.look.columns();
        let text: String = lines
            .into_iter()
            .map(|line| line.render(self.look.colour(), columns) + "\n")
            .collect();
        self.text(&text)
    }

    /// Prints a value as JSON in one line.
    pub fn json(self, value: &impl Serialize) -> Result<Reader, CliError> {
        // Our own types always serialize.
        let line = serde_json::to_string(value).unwrap_or_default();
        self.text(&format!("{}\n", printable::json(&line)))
    }

    /// Prints text as it is. It must be safe for a terminal.
    pub fn text(self, text: &str) -> Result<Reader, CliError> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(Reader::There),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
            Err(error) => Err(CliError::runtime(
                "cannot write to standard output",
                error.to_string(),
                "look where it goes to",
            )),
        }
    }

    /// Prints lines on standard error.
    pub fn complain<'a>(self, lines: impl IntoIterator<Item = &'a Line>) {
        for line in lines {
            // There is nobody left to tell when this does not work.
            writeln!(io::stderr(), "{}", line.render(Colour::Unused, None)).ok();
        }
    }

    /// Prints an error where people see it, and for scripts also where they read.
    pub fn error(self, error: &CliError, is_json: bool) {
        // There is nobody left to tell when this does not work.
        writeln!(io::stderr(), "{error}").ok();
        if is_json {
            self.json(&error.json()).ok();
        }
    }
}
