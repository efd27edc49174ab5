//! Random secrets, and the digests by which the server remembers them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ralph_core::secret::Secret;
use sha2::{Digest as _, Sha256};

/// The number of random bytes of a token, a login code or a cookie.
const BYTES: usize = 32;

/// The digest of a secret. The server compares digests, so the time of a comparison says nothing about
/// the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SecretDigest([u8; 32]);

impl SecretDigest {
    /// Returns the digest of a text.
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

/// Returns a new secret of 256 bits, written with letters, digits, `-` and `_`.
pub(crate) fn random_secret() -> Secret {
    Secret::new(random_text(BYTES))
}

/// Returns a new identifier of 64 bits.
pub(crate) fn random_id() -> String {
    random_text(8)
}

fn random_text(count: usize) -> String {
    let mut bytes = vec![0; count];
    let random = rustls::crypto::ring::default_provider().secure_random;
    // Without randomness the secret would be guessable, so the process must not continue.
    assert!(
        random.fill(&mut bytes).is_ok(),
        "the system's random number generator failed"
    );
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_random_and_long() {
        let [a, b] = [(), ()].map(|()| random_secret());
        assert_eq!((a.expose().len(), b.expose().len()), (43, 43));
        assert_ne!(a.expose(), b.expose());
        assert_ne!(SecretDigest::of(a.expose()), SecretDigest::of(b.expose()));
    }
}
