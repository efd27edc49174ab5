//! Placeholder tokens: random, valid for one run and useless outside its gate.

use subtle::ConstantTimeEq as _;

/// A placeholder for a credential. It is not secret: sandboxes only ever see this token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceholderToken(String);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl PlaceholderToken {
    /// Generates a token in the format of the real credential: a prefix, random characters
    /// and a suffix.
    pub(super) fn random(prefix: &str, length: usize, suffix: &str) -> Self {
        let mut bytes = vec![0; length];
        let random = rustls::crypto::ring::default_provider().secure_random;
        // Without randomness the token would be guessable, so the process must not continue.
        assert!(
            random.fill(&mut bytes).is_ok(),
            "the system's random number generator failed"
        );
        let text: String = bytes
            .into_iter()
            .map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]))
            .collect();
        Self(format!("{prefix}{text}{suffix}"))
    }

    /// Returns the token for the environment of the sandbox.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_random_and_compared_in_full() {
        let [a, b] = [0, 1].map(|_| PlaceholderToken::random("sk-ant-api03-", 93, "AA"));
        assert_eq!(a.as_str().len(), 108);
        assert!(a.as_str().starts_with("sk-ant-api03-") && a.as_str().ends_with("AA"));
        assert!(a.matches(a.as_str().as_bytes()));
        assert!(!a.matches(b.as_str().as_bytes()));
        assert!(!a.matches(&a.as_str().as_bytes()[..107]));
        assert!(!a.matches(b""));
    }
}
