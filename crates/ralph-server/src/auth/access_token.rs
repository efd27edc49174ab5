//! The token of programs: random, or chosen by the user if it is strong enough.

use std::collections::BTreeSet;

use ralph_app::AppError;
use ralph_core::secret::Secret;
use subtle::ConstantTimeEq as _;

use super::random_text::random_secret;

/// The least number of bits that a token must have, estimated from its length and characters.
const MIN_BITS: f64 = 128.0;
/// The least number of different characters.
const MIN_DISTINCT: usize = 8;
/// The largest length of a token, in bytes.
const MAX_LENGTH: usize = 256;

/// The origin of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenOrigin {
    /// The server generated it.
    Generated,
    /// The user set `RALPH_TOKEN`.
    Environment,
}

/// The token that programs send as `Authorization: Bearer`.
#[derive(Debug)]
pub(crate) struct AccessToken {
    secret: Secret,
    origin: TokenOrigin,
}

impl AccessToken {
    /// Returns a new random token of 256 bits.
    pub(crate) fn generate() -> Self {
        Self {
            secret: random_secret(),
            origin: TokenOrigin::Generated,
        }
    }

    /// Accepts the token of the user, unless it could be guessed.
    pub(crate) fn from_environment(secret: Secret) -> Result<Self, AppError> {
        weakness(secret.expose()).map_or(
            Ok(Self {
                secret,
                origin: TokenOrigin::Environment,
            }),
            |why| {
                Err(AppError::usage(
                    "`RALPH_TOKEN` is not accepted",
                    why,
                    "create one with `openssl rand -hex 32`, or unset it for a random one",
                ))
            },
        )
    }

    /// Returns the token itself.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns the origin of the token.
    pub(crate) fn origin(&self) -> TokenOrigin {
        self.origin
    }

    /// Compares in constant time.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.secret
            .expose()
            .as_bytes()
            .ct_eq(text.as_bytes())
            .into()
    }
}

/// Returns why a token is too weak, or nothing.
fn weakness(token: &str) -> Option<String> {
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("it has a space or a character that no header can contain".into());
    }
    if token.len() > MAX_LENGTH {
        return Some(format!("it has more than {MAX_LENGTH} characters"));
    }
    let distinct = token.bytes().collect::<BTreeSet<u8>>().len();
    let length = u32::try_from(token.len()).unwrap_or(u32::MAX);
    let bits = f64::from(length) * bits_per_character(token);
    (bits < MIN_BITS || distinct < MIN_DISTINCT).then(|| {
        format!(
            "it has {} characters of {distinct} kinds, which can be guessed",
            token.len()
        )
    })
}

/// Estimates the bits of a random character from the kinds of characters that occur.
fn bits_per_character(token: &str) -> f64 {
    let all = |is_kind: fn(&u8) -> bool| token.as_bytes().iter().all(is_kind);
    let symbols: f64 = if all(u8::is_ascii_digit) {
        10.0
    } else if all(u8::is_ascii_hexdigit) {
        16.0
    } else if all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        36.0
    } else {
        64.0
    };
    symbols.log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(token: &str) -> bool {
        AccessToken::from_environment(Secret::new(token.into())).is_ok()
    }

    #[test]
    fn a_chosen_token_needs_128_bits() {
        for weak in [
            "",
            "secret",
            "0123456789abcdef0123456789abcde",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "12345678901234567890123456789012345678",
            "0123456789abcdef 0123456789abcdef",
            "0123456789abcdef0123456789abcdeä",
            &"0123456789abcdef".repeat(17),
        ] {
            assert!(!accepts(weak), "{weak}");
        }
        for strong in [
            "0123456789abcdef0123456789abcdef",
            "q8Xr2LwT5yVbN9mKcD3fGh",
            "the-token-of-a-long-sentence",
        ] {
            assert!(accepts(strong), "{strong}");
        }
        assert!(accepts(AccessToken::generate().secret().expose()));
    }

    #[test]
    fn tokens_are_compared_in_full() {
        let token = AccessToken::generate();
        let text = token.secret().expose().to_owned();
        assert!(token.matches(&text));
        assert!(!token.matches(&text[..42]));
        assert!(!token.matches(&format!("{text}x")));
        assert!(!token.matches(""));
        assert!(!AccessToken::generate().matches(&text));
    }
}
