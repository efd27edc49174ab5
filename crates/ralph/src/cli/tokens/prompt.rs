//! Reads a credential that the user types or pastes, without showing it.

use std::io::{self, Read, Write};

use ralph_app::tokens::{AuthToken, TokenParseError};
use ralph_core::secret::Secret;
use rustix::fd::AsFd;

use super::terminal_mode::{TerminalInput, TerminalModeGuard};

/// The limit of the input, in bytes.
const MAX_BYTES: usize = 64 << 10;

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];

/// The reason why no credential was read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PromptError {
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The line was empty.
    #[error("no token was typed")]
    Empty,
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    /// The input is not a valid credential.
    #[error(transparent)]
    Bad(#[from] TokenParseError),
}

/// Asks for a credential on a terminal.
pub(super) fn prompt_for_token(
    terminal: impl AsFd + Read,
    mut screen: impl Write,
    question: &str,
) -> Result<AuthToken, PromptError> {
    let handle = terminal.as_fd().try_clone_to_owned()?;
    let hidden_input = TerminalModeGuard::enter(handle.as_fd(), TerminalInput::Hidden)?;
    write!(screen, "{question}")?;
    screen.flush()?;
    let line = read_line(terminal);
    drop(hidden_input);
    writeln!(screen)?;
    Ok(AuthToken::from_secret(line?)?)
}

/// Reads one line, key by key, without surrounding spaces.
fn read_line(mut keys: impl Read) -> Result<Secret, PromptError> {
    // Allocated at full size: growing would leave copies of the credential in memory.
    let mut line = String::with_capacity(MAX_BYTES);
    let mut key = [0];
    while line.len() < MAX_BYTES - 1 && keys.read(&mut key)? == 1 {
        match key[0] {
            CTRL_C => {
                drop(Secret::new(line));
                return Err(PromptError::Interrupted);
            }
            b'\n' | b'\r' | CTRL_D => break,
            byte if BACKSPACE.contains(&byte) => {
                line.pop();
            }
            byte => line.push(char::from(byte)),
        }
    }
    let line = Secret::new(line);
    let typed = line.expose().trim();
    if typed.is_empty() {
        return Err(PromptError::Empty);
    }
    Ok(Secret::new(typed.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_key_by_key() {
        for (keys, expected) in [
            (&b"sk-canary-0\nmore"[..], Ok("sk-canary-0")),
            (b"  sk-canary-0 \r", Ok("sk-canary-0")),
            (b"sk-cax\x7fnary-\x08-0\x04", Ok("sk-canary-0")),
            (b"sk-canary-0", Ok("sk-canary-0")),
            (b"\x7f\n", Err("no token was typed")),
            (b"sk-can\x03", Err("interrupted")),
        ] {
            let read = read_line(keys);
            let read = read
                .as_ref()
                .map(Secret::expose)
                .map_err(ToString::to_string);
            assert_eq!(read, expected.map_err(str::to_owned));
        }
    }
}
