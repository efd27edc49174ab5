//! Standard output and standard error of commands.

use std::io::{self, Write};

use ralph_app::{AppError, ErrorDetails};
use ralph_core::printable;
use serde::Serialize;

use super::lint::finding_lines;
use crate::terminal::StdoutStyle;
use crate::terminal::sanitize;
use crate::terminal::styled_line::{Colour, StyledLine};

/// Whether standard output still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdoutReader {
    /// The reader is connected.
    Connected,
    /// The reader is gone, as in `ralph logs last | head`. This is not an error.
    Disconnected,
}

/// The output of commands.
#[derive(Debug, Clone, Copy)]
pub struct CliOutput {
    style: StdoutStyle,
}

impl CliOutput {
    /// Creates an output with this style.
    pub fn new(style: StdoutStyle) -> Self {
        Self { style }
    }

    /// Returns the style.
    pub fn style(self) -> StdoutStyle {
        self.style
    }

    /// Prints styled lines.
    pub fn print_lines<'a>(
        self,
        lines: impl IntoIterator<Item = &'a StyledLine>,
    ) -> Result<StdoutReader, AppError> {
        let columns = self.style.columns();
        let text: String = lines
            .into_iter()
            .map(|line| line.render(self.style.colour(), columns) + "\n")
            .collect();
        self.print_text(&text)
    }

    /// Prints a value as JSON in one line.
    pub fn print_json(self, value: &impl Serialize) -> Result<StdoutReader, AppError> {
        let line = serde_json::to_string(value).map_err(|error| {
            AppError::runtime("cannot write the result as JSON", error.to_string(), "")
        })?;
        self.print_text(&format!("{}\n", printable::escape_json(&line)))
    }

    /// Prints text unchanged. It must be safe for a terminal.
    pub fn print_text(self, text: &str) -> Result<StdoutReader, AppError> {
        self.print_bytes(text.as_bytes())
    }

    /// Prints bytes unchanged, for an output that is not a terminal.
    pub fn print_bytes(self, bytes: &[u8]) -> Result<StdoutReader, AppError> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Ok(()) => Ok(StdoutReader::Connected),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(StdoutReader::Disconnected)
            }
            Err(error) => Err(AppError::runtime(
                "cannot write to standard output",
                error.to_string(),
                "check where it is redirected",
            )),
        }
    }

    /// Prints lines on standard error.
    pub fn print_stderr_lines<'a>(self, lines: impl IntoIterator<Item = &'a StyledLine>) {
        for line in lines {
            // Without standard error there is no place to report that it failed.
            let _written = writeln!(io::stderr(), "{}", line.render(Colour::Unused, None));
        }
    }

    /// Prints an error on standard error, and for scripts also as JSON on standard output.
    pub fn print_error(self, error: &AppError, is_json: bool) {
        self.print_stderr_lines(&detail_lines(&error.details));
        let others = match &*error.details {
            ErrorDetails::Others(others) => others.as_slice(),
            ErrorDetails::None | ErrorDetails::Findings { .. } | ErrorDetails::BuildLog(_) => &[],
        };
        for error in std::iter::once(error).chain(others) {
            // Without standard error there is no place to report that it failed.
            let _written = writeln!(io::stderr(), "{}", error_line(error));
        }
        if is_json {
            let _printed = self.print_json(&error.json());
        }
    }
}

/// Formats an error as one line, even if its parts contain line breaks.
fn error_line(error: &AppError) -> String {
    let parts: Vec<String> = error.parts().map(sanitize::line).collect();
    format!("ralph: {}", parts.join(" — "))
}

fn detail_lines(details: &ErrorDetails) -> Vec<StyledLine> {
    match details {
        ErrorDetails::None | ErrorDetails::Others(_) => Vec::new(),
        ErrorDetails::Findings { file, findings } => finding_lines(file, findings),
        ErrorDetails::BuildLog(lines) => lines
            .iter()
            .map(|line| StyledLine::from_text(line).indented())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_always_printed_on_one_line() {
        let error = AppError::usage("a\nb", "\u{1b}[31mred", "c\u{202e}d");
        assert_eq!(error_line(&error), "ralph: a b — red — c�d");
    }
}
