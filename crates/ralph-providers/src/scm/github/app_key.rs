//! The private key of a GitHub App, which signs the App's requests.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ralph_core::secret::Secret;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::SigningKey;

/// The validity of a signature, in seconds; GitHub accepts at most 600.
const VALID_SECONDS: i64 = 540;

/// How far its start is in the past, in seconds: GitHub's clock may be behind.
const BACKDATED_SECONDS: i64 = 60;

/// The private key of a GitHub App.
#[derive(Clone)]
pub struct AppKey(Arc<dyn SigningKey>);

/// The reason why a text is not the private key of an App. The messages never repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppKeyError {
    /// The text is not a private key in PEM format.
    #[error("it is not a private key in PEM format")]
    Pem,
    /// The key cannot be parsed, or is not an RSA key.
    #[error("it is not an RSA key of 2048 to 8192 bits")]
    NotRsa,
}

impl AppKey {
    /// Parses a key in PEM format. In a variable, `\n` may stand for a line break.
    pub fn parse(pem: &Secret) -> Result<Self, AppKeyError> {
        let text = Secret::new(pem.expose().replace("\\n", "\n"));
        let der = PrivateKeyDer::from_pem_slice(text.expose().as_bytes())
            .map_err(|_| AppKeyError::Pem)?;
        let key = any_supported_type(&der).map_err(|_| AppKeyError::NotRsa)?;
        let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
        signer.map(|_| Self(key)).ok_or(AppKeyError::NotRsa)
    }

    /// Returns a token that identifies the App for nine minutes, a JSON Web Token with RS256.
    pub(super) fn sign(&self, app: &str, now: Timestamp) -> Result<Secret, rustls::Error> {
        let start = now.as_second() - BACKDATED_SECONDS;
        let end = now.as_second() + VALID_SECONDS;
        let claims = serde_json::json!({"iat": start, "exp": end, "iss": app}).to_string();
        let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        let head = encode(br#"{"alg":"RS256","typ":"JWT"}"#);
        let content = format!("{head}.{}", encode(claims.as_bytes()));
        let signer = self.0.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
        let signer = signer.ok_or_else(|| rustls::Error::General("not an RSA key".to_owned()))?;
        let signature = signer.sign(content.as_bytes())?;
        Ok(Secret::new(format!("{content}.{}", encode(&signature))))
    }
}

impl fmt::Debug for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppKey(***)")
    }
}
