//! Reads a piped credential: a bare token, or its stored JSON.

use std::io::{self, Read};

use ralph_app::tokens::{AuthToken, TokenParseError};
use ralph_core::secret::Secret;

/// The limit of the input, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// A piped credential.
#[derive(Debug)]
pub(super) struct PipedToken {
    pub token: AuthToken,
    /// Whether the token is JSON without `accessToken`, which is used unchanged.
    pub is_unrecognized_json: bool,
}

/// The reason why no credential was read from a pipe.
#[derive(Debug, thiserror::Error)]
pub(super) enum PipedTokenError {
    /// The input was empty.
    #[error("no token provided on stdin")]
    Empty,
    /// The input was too long.
    #[error("more than {MAX_BYTES} bytes were piped in")]
    TooLong,
    /// The input could not be read.
    #[error("standard input cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The input is not a valid credential.
    #[error(transparent)]
    Bad(#[from] TokenParseError),
}

/// Reads the input until its end.
pub(super) fn read_piped(input: impl Read) -> Result<PipedToken, PipedTokenError> {
    // Allocated at full size: growing would leave copies of the credential in memory.
    let mut text = String::with_capacity(MAX_BYTES + 1);
    let read = input.take(MAX_BYTES as u64 + 1).read_to_string(&mut text);
    let text = Secret::new(text);
    read?;
    if text.expose().len() > MAX_BYTES {
        return Err(PipedTokenError::TooLong);
    }
    let whole = text.expose().trim();
    if whole.is_empty() {
        return Err(PipedTokenError::Empty);
    }
    match AuthToken::from_json(&text) {
        Ok(token) => Ok(PipedToken {
            token,
            is_unrecognized_json: false,
        }),
        Err(error @ (TokenParseError::NotAnObject | TokenParseError::Missing)) => Ok(PipedToken {
            token: AuthToken::from_secret(Secret::new(whole.to_owned()))?,
            is_unrecognized_json: error == TokenParseError::Missing,
        }),
        Err(
            error @ (TokenParseError::Characters
            | TokenParseError::Expiry
            | TokenParseError::Address(_)
            | TokenParseError::Prefix),
        ) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_token_and_json_are_accepted() {
        for (input, token, expires, is_odd_json) in [
            ("sk-canary-0\n", "sk-canary-0", None, false),
            ("  sk-canary-0  \r\n", "sk-canary-0", None, false),
            (
                r#"{"accessToken":"sk-canary-0"}"#,
                "sk-canary-0",
                None,
                false,
            ),
            (
                "{\"accessToken\":\"sk-canary-0\",\"expiresAt\":7000}\n",
                "sk-canary-0",
                Some(7000),
                false,
            ),
            (
                r#"{"token":"sk-canary-0"}"#,
                r#"{"token":"sk-canary-0"}"#,
                None,
                true,
            ),
        ] {
            let given = read_piped(input.as_bytes()).unwrap();
            let read = given.token.expires.map(jiff::Timestamp::as_millisecond);
            assert_eq!(
                (
                    given.token.secret.expose(),
                    read,
                    given.is_unrecognized_json
                ),
                (token, expires, is_odd_json)
            );
        }
    }

    #[test]
    fn invalid_input_is_rejected_without_being_echoed() {
        let long = "x".repeat(MAX_BYTES + 1);
        for (input, message) in [
            ("", "no token provided on stdin"),
            (" \n\n", "no token provided on stdin"),
            (
                "canary\n",
                "a token is 8 to 16384 printable characters without spaces",
            ),
            (
                "canary-1 canary-2",
                "a token is 8 to 16384 printable characters without spaces",
            ),
            (
                r#"{"accessToken":"canary-1","expiresAt":"canary"}"#,
                "`expiresAt` is not a number of milliseconds since 1970",
            ),
            (&long, "more than 65536 bytes were piped in"),
        ] {
            assert_eq!(
                read_piped(input.as_bytes()).unwrap_err().to_string(),
                message
            );
        }
        assert!(matches!(
            read_piped(&b"\xff\xfe"[..]),
            Err(PipedTokenError::Read(_))
        ));
    }
}
