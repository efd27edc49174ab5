//! Reads the credential from standard input: mode and credential in two lines, or only the
//! credential.

use std::io::{self, Read};

use ralph_core::secret::Secret;

use crate::tokens::{AgentAuth, AuthMode};

/// The limit of the input, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// A credential with its authentication mode.
#[derive(Debug)]
pub struct ProxyCredential {
    pub mode: AuthMode,
    pub secret: Secret,
}

/// The reason why there is no credential.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The input was empty.
    #[error("no credential provided on stdin")]
    Empty,
    /// The input had the wrong number of lines.
    #[error("expected one or two lines, got {lines}")]
    Lines { lines: usize },
    /// The first line is not a valid mode.
    #[error("the first of two lines is the mode: oauth, api_key or gateway")]
    Mode,
    /// The agent does not support the mode.
    #[error("this agent does not authenticate with {0}")]
    UnsupportedMode(AuthMode),
    /// The input could not be read.
    #[error("cannot read standard input: {0}")]
    Read(#[from] io::Error),
}

/// Reads the credential until the end of the input.
pub fn read_credential(
    input: impl Read,
    agent: &AgentAuth,
) -> Result<ProxyCredential, CredentialError> {
    // Allocated at full size: growing would leave copies of the credential in memory.
    let mut text = String::with_capacity(MAX_BYTES);
    let read = input.take(MAX_BYTES as u64).read_to_string(&mut text);
    let text = Secret::new(text);
    read?;
    let lines: Vec<&str> = text.expose().lines().map(str::trim).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    let (mode, secret) = match lines[..] {
        [] => return Err(CredentialError::Empty),
        [secret] => (agent.infer_mode(secret), secret),
        [mode, secret] => (parse_mode(mode)?, secret),
        [..] => return Err(CredentialError::Lines { lines: lines.len() }),
    };
    if !agent.modes.contains(&mode) {
        return Err(CredentialError::UnsupportedMode(mode));
    }
    Ok(ProxyCredential {
        mode,
        secret: Secret::new(secret.to_owned()),
    })
}

fn parse_mode(word: &str) -> Result<AuthMode, CredentialError> {
    let word = word.replace('_', "-");
    AuthMode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == word)
        .ok_or(CredentialError::Mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::AgentName;

    #[test]
    fn the_mode_is_given_or_inferred() {
        for (agent, input, expected) in [
            (
                "claude",
                "sk-ant-oat01-canary\n",
                Ok((AuthMode::Oauth, "sk-ant-oat01-canary")),
            ),
            (
                "claude",
                "sk-ant-api03-canary",
                Ok((AuthMode::ApiKey, "sk-ant-api03-canary")),
            ),
            (
                "claude",
                "api_key\r\ncanary\r\n",
                Ok((AuthMode::ApiKey, "canary")),
            ),
            (
                "claude",
                "gateway\ncanary\n\n",
                Ok((AuthMode::Gateway, "canary")),
            ),
            ("codex", "api-key\ncanary", Ok((AuthMode::ApiKey, "canary"))),
            (
                "codex",
                "oauth\ncanary",
                Err("this agent does not authenticate with oauth"),
            ),
            ("claude", "", Err("no credential provided on stdin")),
            ("claude", " \n\n", Err("no credential provided on stdin")),
            (
                "claude",
                "canary\ncanary",
                Err("the first of two lines is the mode: oauth, api_key or gateway"),
            ),
            (
                "claude",
                "oauth\ncanary\ncanary",
                Err("expected one or two lines, got 3"),
            ),
        ] {
            let agent = AgentAuth::for_agent(&AgentName::parse(agent).unwrap());
            let read = read_credential(input.as_bytes(), &agent);
            let read = read
                .as_ref()
                .map(|found| (found.mode, found.secret.expose()));
            assert_eq!(
                read.map_err(ToString::to_string),
                expected.map_err(str::to_owned)
            );
        }
    }
}
