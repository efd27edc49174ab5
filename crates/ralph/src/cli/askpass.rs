//! The program that git starts for a credential: it asks the process of ralph that started git.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use ralph_engine::git::{SOCKET_VARIABLE, ask};

/// Answers a prompt of git, if git started this process for it: a variable names the socket, and the
/// only argument is the prompt.
pub(super) fn answer_git() -> Option<ExitCode> {
    let socket = std::env::var_os(SOCKET_VARIABLE)?;
    let mut arguments = std::env::args_os().skip(1);
    let prompt = arguments.next().unwrap_or_default();
    if arguments.next().is_some() {
        return None;
    }
    Some(answer(&socket, &prompt))
}

fn answer(socket: &OsStr, prompt: &OsStr) -> ExitCode {
    let answered =
        ask(Path::new(socket), &prompt.to_string_lossy()).and_then(|answer| print(&answer));
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        // Git reports that it has no credential; the process that started git logs the reason.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints an answer. Git reads one line.
fn print(answer: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush()
}
