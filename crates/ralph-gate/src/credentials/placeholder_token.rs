//! A stand-in for a credential: random, of this run alone, and worth nothing anywhere else.

use subtle::ConstantTimeEq as _;

/// A stand-in for a credential. It may be printed: that is all a sandbox ever sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceholderToken(String);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl PlaceholderToken {
    /// Makes a random one with the look of the real thing: a prefix, so many letters, a suffix.
    pub(super) fn random(prefix: &str, letters: usize, suffix: &str) -> Self {
        let mut bytes = vec![0; letters];
        let random = rustls::crypto::ring::default_provider().secure_random;
        // Without chance there is no secret; whoever cannot have it must not go on.
        assert!(
            random.fill(&mut bytes).is_ok(),
            "the system has no randomness"
        );
        let text: String = bytes
            .into_iter()
            .map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]))
            .collect();
        Self(format!("{prefix}{text}{suffix}"))
    }

    /// Returns it, for the environment of the sandbox.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where they differ.
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
