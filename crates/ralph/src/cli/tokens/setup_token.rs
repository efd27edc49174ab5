//! `claude setup-token`: the program that creates a token of a subscription, in a separate
//! terminal.
//!
//! It requires a terminal and prints the token there, so it gets one that is wide enough for the
//! token to stay on one line. Its output is forwarded without the token.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ralph_app::tokens::{AuthToken, TokenParseError};
use ralph_core::secret::{Redactor, Secret};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use zeroize::Zeroizing;

use super::terminal_mode::{TerminalInput, TerminalModeGuard};

/// The prefix of a subscription's token.
const TOKEN_PREFIX: &str = "sk-ant-oat01-";

/// The size of the terminal.
const PTY_SIZE: Winsize = Winsize {
    ws_row: 50,
    ws_col: 512,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// The number of bytes of the output that are searched for the token.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

const CTRL_C: u8 = 3;

/// The reason why there is no token.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The program printed no token.
    #[error("it exited with {code} and printed no token")]
    NoToken { code: i32 },
    /// The program cannot be run in a terminal.
    #[error("it cannot be run in a terminal: {0}")]
    Terminal(#[from] io::Error),
    /// The printed text is not a valid credential.
    #[error(transparent)]
    Bad(#[from] TokenParseError),
}

/// Runs `claude setup-token` on the user's terminal and returns the token that it prints. It finds
/// other programs by `search_path`.
pub(super) fn setup_token(
    program: &Path,
    search_path: &str,
    keys: impl AsFd + Read,
    screen: impl Write,
) -> Result<AuthToken, SetupError> {
    let (ours, theirs) = open_pty()?;
    let child = Command::new(program)
        .arg("setup-token")
        .env("PATH", search_path)
        .stdin(Stdio::from(theirs.try_clone()?))
        .stdout(Stdio::from(theirs.try_clone()?))
        .stderr(Stdio::from(theirs))
        .spawn()?;
    let mut child = KillOnDrop(child);
    let handle = keys.as_fd().try_clone_to_owned()?;
    let raw_input = TerminalModeGuard::enter(handle.as_fd(), TerminalInput::Raw)?;
    let output = relay(File::from(ours), keys, screen);
    drop(raw_input);
    let output = output?;
    let code = child.0.wait()?.code().unwrap_or(-1);
    let token = longest_token(&output).ok_or(SetupError::NoToken { code })?;
    Ok(AuthToken::from_secret(token)?)
}

/// A child process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // A child that has ended is not killed again.
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            tracing::warn!(%error, "cannot end the program that creates a token");
        }
    }
}

fn open_pty() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    rustix::termios::tcsetwinsize(&theirs, PTY_SIZE)?;
    Ok((ours, theirs))
}

/// Forwards input and output until the program closes its terminal; returns the output.
fn relay(
    mut terminal: File,
    mut keys: impl AsFd + Read,
    mut screen: impl Write,
) -> Result<Zeroizing<Vec<u8>>, SetupError> {
    let redactor = Redactor::default();
    let mut without_token = redactor.stream();
    let mut output = Zeroizing::new(Vec::with_capacity(MAX_OUTPUT_BYTES));
    let mut visible = Vec::new();
    let mut buffer = Zeroizing::new([0; 4096]);
    let mut keys_flags = PollFlags::IN;
    loop {
        let (typed, written) = {
            let mut both = [
                PollFd::new(&terminal, PollFlags::IN),
                PollFd::new(&keys, keys_flags),
            ];
            poll(&mut both, None).map_err(io::Error::from)?;
            (!both[1].revents().is_empty(), !both[0].revents().is_empty())
        };
        if written {
            // On Linux the end of a terminal is an error.
            let read = terminal.read(&mut buffer[..]).unwrap_or(0);
            if read == 0 {
                without_token.finish(&mut visible);
                screen.write_all(&visible)?;
                screen.flush()?;
                return Ok(output);
            }
            let room = MAX_OUTPUT_BYTES - output.len();
            output.extend_from_slice(&buffer[..read.min(room)]);
            without_token.push(&buffer[..read], &mut visible);
            screen.write_all(&visible)?;
            screen.flush()?;
            visible.clear();
        }
        if typed && !keys_flags.is_empty() {
            let read = keys.read(&mut buffer[..])?;
            if buffer[..read].contains(&CTRL_C) {
                return Err(SetupError::Interrupted);
            }
            if read == 0 {
                keys_flags = PollFlags::empty();
            }
            terminal.write_all(&buffer[..read])?;
        }
    }
}

/// Returns the longest token in the output, which may also contain partially drawn ones.
fn longest_token(output: &[u8]) -> Option<Secret> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let starts = output
        .windows(TOKEN_PREFIX.len())
        .enumerate()
        .filter(|(_, window)| *window == TOKEN_PREFIX.as_bytes());
    let tokens = starts.map(|(start, _)| {
        let length = output[start..]
            .iter()
            .take_while(|byte| is_part(byte))
            .count();
        &output[start..start + length]
    });
    let longest = tokens.max_by_key(|token| token.len())?;
    (longest.len() > TOKEN_PREFIX.len())
        .then(|| Secret::new(String::from_utf8_lossy(longest).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_token_is_the_whole_one() {
        for (shown, expected) in [
            (
                "sk-ant-oat01-ab\r\n\x1b[32msk-ant-oat01-abCD_09-x\x1b[0m\r\nsk-ant-oat01-a",
                Some("sk-ant-oat01-abCD_09-x"),
            ),
            ("nothing here", None),
            ("sk-ant-oat01-", None),
        ] {
            let found = longest_token(shown.as_bytes());
            assert_eq!(found.as_ref().map(Secret::expose), expected);
        }
    }
}
