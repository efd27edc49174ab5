//! The login of `gh`, GitHub's own program.

use std::ffi::OsStr;

use ralph_core::secret::Secret;

use super::program::{self, KeyringProgramError, find_program};

/// The result of asking `gh` for its token.
#[derive(Debug)]
pub enum GhLogin {
    /// The token for the host.
    Token(Secret),
    /// The program is not installed.
    NotInstalled,
    /// The program has no login for the host.
    LoggedOut,
}

/// Returns the token that `gh` uses for a host.
pub async fn gh_login(search_path: &str, host: &str) -> Result<GhLogin, KeyringProgramError> {
    let Some(gh) = find_program(search_path, "gh") else {
        return Ok(GhLogin::NotInstalled);
    };
    let arguments = ["auth", "token", "--hostname", host].map(OsStr::new);
    let input = Secret::new(String::new());
    let output = program::run(&gh, search_path, &arguments, &input).await?;
    let token = output.output.expose().trim();
    if output.code != 0 || token.is_empty() {
        return Ok(GhLogin::LoggedOut);
    }
    Ok(GhLogin::Token(Secret::new(token.to_owned())))
}
