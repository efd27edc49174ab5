//! Switches a terminal to a mode that neither shows nor interprets typed text, and restores it.

use std::io;

use rustix::fd::BorrowedFd;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// The processing of typed text by a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalInput {
    /// The terminal shows nothing; keys arrive one by one, Ctrl-C as a byte.
    Hidden,
    /// The terminal forwards everything.
    Raw,
}

/// Restores the mode of a terminal when dropped.
pub(super) struct TerminalModeGuard<'a> {
    terminal: BorrowedFd<'a>,
    original: Termios,
}

impl<'a> TerminalModeGuard<'a> {
    /// Switches the mode of a terminal.
    pub(super) fn enter(terminal: BorrowedFd<'a>, input: TerminalInput) -> io::Result<Self> {
        let original = rustix::termios::tcgetattr(terminal)?;
        let mut changed = original.clone();
        match input {
            TerminalInput::Hidden => {
                changed
                    .local_modes
                    .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
                changed.special_codes[SpecialCodeIndex::VMIN] = 1;
                changed.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
            TerminalInput::Raw => changed.make_raw(),
        }
        rustix::termios::tcsetattr(terminal, OptionalActions::Flush, &changed)?;
        Ok(Self { terminal, original })
    }
}

impl Drop for TerminalModeGuard<'_> {
    fn drop(&mut self) {
        let restored =
            rustix::termios::tcsetattr(self.terminal, OptionalActions::Now, &self.original);
        if let Err(error) = restored {
            tracing::warn!(%error, "cannot restore the mode of the terminal");
        }
    }
}
