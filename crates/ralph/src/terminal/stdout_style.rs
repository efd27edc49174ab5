//! Determines the capabilities of the terminal once.

use std::io::IsTerminal as _;

use ralph_app::config::Environment;

use super::styled_line::Colour;
use super::view::{OutputMode, SpinnerVisibility};

/// The source of the number of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// The terminal is queried each time, because windows can be resized; the number is the
    /// fallback.
    Terminal(usize),
    /// A fixed number.
    Fixed(usize),
}

impl Width {
    /// Returns the current number of columns of the terminal, or the fixed number.
    pub fn columns(self) -> usize {
        match self {
            Self::Fixed(columns) => columns,
            Self::Terminal(fallback) => {
                match rustix::termios::tcgetwinsize(std::io::stdout()) {
                    Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
                    // Some terminals have no size.
                    Ok(_) | Err(_) => fallback,
                }
            }
        }
    }
}

/// Returns the number of rows of the terminal.
pub fn terminal_rows() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_row > 0 => usize::from(size.ws_row),
        // Some terminals have no size.
        Ok(_) | Err(_) => 24,
    }
}

/// The style of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdoutStyle {
    /// A terminal with colours.
    Rich(Width),
    /// A terminal of a user who wants no colours: bars and the width, but no escape sequence.
    Uncoloured(Width),
    /// Lines without any escape sequence.
    Plain,
}

impl StdoutStyle {
    /// Detects the style from standard output and the environment.
    pub fn detect(environment: &Environment) -> Self {
        Self::for_terminal(environment, std::io::stdout().is_terminal())
    }

    fn for_terminal(environment: &Environment, is_terminal: bool) -> Self {
        if !is_terminal || environment.is_dumb_terminal() {
            return Self::Plain;
        }
        let width = Width::Terminal(environment.columns().unwrap_or(80));
        if environment.wants_colour() {
            Self::Rich(width)
        } else {
            Self::Uncoloured(width)
        }
    }

    /// Returns whether colours are used.
    pub fn colour(self) -> Colour {
        match self {
            Self::Rich(_) => Colour::Used,
            Self::Uncoloured(_) | Self::Plain => Colour::Unused,
        }
    }

    /// Returns the maximum number of columns of a line, if limited.
    pub fn columns(self) -> Option<usize> {
        match self {
            Self::Rich(width) | Self::Uncoloured(width) => Some(width.columns()),
            Self::Plain => None,
        }
    }

    /// Returns the mode of a [`RunView`](super::RunView) with this style.
    pub fn output_mode(self, spinner: SpinnerVisibility) -> OutputMode {
        match self {
            Self::Rich(width) => OutputMode::Rich(width, spinner),
            Self::Uncoloured(width) => OutputMode::Uncoloured(width),
            Self::Plain => OutputMode::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_that_wants_them() {
        let style = |variables: &[(&str, &str)], is_terminal| {
            let variables = variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()));
            let environment = Environment::new(variables, "/".into());
            StdoutStyle::for_terminal(&environment, is_terminal)
        };
        let rich = |columns| StdoutStyle::Rich(Width::Terminal(columns));
        assert_eq!(style(&[("TERM", "xterm")], true), rich(80));
        assert_eq!(
            style(&[("TERM", "xterm"), ("COLUMNS", "120")], true),
            rich(120)
        );
        assert_eq!(
            style(&[("TERM", "xterm"), ("NO_COLOR", "")], true),
            rich(80)
        );
        assert_eq!(
            style(&[("TERM", "xterm"), ("NO_COLOR", "1")], true),
            StdoutStyle::Uncoloured(Width::Terminal(80))
        );
        assert_eq!(
            style(&[("TERM", "dumb"), ("NO_COLOR", "1")], true),
            StdoutStyle::Plain
        );
        assert_eq!(style(&[("TERM", "dumb")], true), StdoutStyle::Plain);
        assert_eq!(style(&[("TERM", "xterm")], false), StdoutStyle::Plain);
    }
}
