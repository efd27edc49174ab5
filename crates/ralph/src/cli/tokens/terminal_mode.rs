//! A terminal that neither shows nor interprets what is typed, until it is let go.

use std::io;

use rustix::fd::BorrowedFd;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// What a terminal still does with what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalInput {
    /// It shows nothing; keys come one by one, Ctrl-C as a byte.
    Hidden,
    /// It hands everything on.
    Raw,
}

/// Puts a terminal back as it was when dropped.
pub(super) struct TerminalModeGuard<'a> {
    terminal: BorrowedFd<'a>,
    original: Termios,
}

impl<'a> TerminalModeGuard<'a> {
    /// Takes a terminal.
    pub(super) fn enter(terminal: BorrowedFd<'a>, typing: TerminalInput) -> io::Result<Self> {
        let before = rustix::termios::tcgetattr(terminal)?;
        let mut quiet = before.clone();
        match typing {
            TerminalInput::Hidden => {
                quiet
                    .local_modes
                    .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
                quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
                quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
            TerminalInput::Raw => quiet.make_raw(),
        }
        rustix::termios::tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self {
            terminal,
            original: before,
        })
    }
}

impl Drop for TerminalModeGuard<'_> {
    fn drop(&mut self) {
        // There is nobody left to tell when this does not work.
        rustix::termios::tcsetattr(self.terminal, OptionalActions::Now, &self.original).ok();
    }
}
