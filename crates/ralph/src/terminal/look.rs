//! Decides once what the terminal can show.

use std::io::IsTerminal as _;

use super::line::Colour;
use super::view::{Mode, Progress};
use crate::config::Environment;

/// Where the number of columns comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// The terminal is asked each time, because people resize windows; the number is for when it
    /// does not answer.
    Terminal(usize),
    /// Always the same.
    Fixed(usize),
}

impl Width {
    /// Returns the number of columns now.
    pub fn columns(self) -> usize {
        match self {
            Self::Fixed(columns) => columns,
            Self::Terminal(otherwise) => rustix::termios::tcgetwinsize(std::io::stdout())
                .ok()
                .map(|size| usize::from(size.ws_col))
                .filter(|columns| *columns > 0)
                .unwrap_or(otherwise),
        }
    }
}

/// How things may look on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A terminal with colours.
    Rich(Width),
    /// Lines without any escape sequence.
    Plain,
}

impl Look {
    /// Looks at standard output and at what the environment says about it.
    pub fn of_stdout(environment: &Environment) -> Self {
        Self::of(environment, std::io::stdout().is_terminal())
    }

    fn of(environment: &Environment, is_terminal: bool) -> Self {
        if is_terminal && environment.wants_colour() {
            Self::Rich(Width::Terminal(environment.columns().unwrap_or(80)))
        } else {
            Self::Plain
        }
    }

    /// Returns whether colours are used.
    pub fn colour(self) -> Colour {
        match self {
            Self::Rich(_) => Colour::Used,
            Self::Plain => Colour::Unused,
        }
    }

    /// Returns the columns that a line may take, if that is limited.
    pub fn columns(self) -> Option<usize> {
        match self {
            Self::Rich(width) => Some(width.columns()),
            Self::Plain => None,
        }
    }

    /// Returns the mode of a [`View`](super::View) with this look.
    pub fn mode(self, progress: Progress) -> Mode {
        match self {
            Self::Rich(width) => Mode::Rich(width, progress),
            Self::Plain => Mode::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_that_wants_them() {
        let look = |variables: &[(&str, &str)], is_terminal| {
            Look::of(&Environment::for_test(variables), is_terminal)
        };
        let rich = |columns| Look::Rich(Width::Terminal(columns));
        assert_eq!(look(&[("TERM", "xterm")], true), rich(80));
        assert_eq!(
            look(&[("TERM", "xterm"), ("COLUMNS", "120")], true),
            rich(120)
        );
        assert_eq!(look(&[("TERM", "xterm"), ("NO_COLOR", "")], true), rich(80));
        assert_eq!(
            look(&[("TERM", "xterm"), ("NO_COLOR", "1")], true),
            Look::Plain
        );
        assert_eq!(look(&[("TERM", "dumb")], true), Look::Plain);
        assert_eq!(look(&[("TERM", "xterm")], false), Look::Plain);
    }
}
