//! A credential with its metadata.

use jiff::Timestamp;
use ralph_core::secret::Secret;
use serde::Serialize;
use serde_json::{Map, Value};

use super::base_url::{BaseUrl, BaseUrlError};
use super::expiry;

/// A credential with its metadata.
#[derive(Debug)]
pub struct AuthToken {
    pub secret: Secret,
    /// The time of expiry, if known.
    pub expires: Option<Timestamp>,
    /// The API of the credential, if not the provider's default.
    pub base_url: Option<BaseUrl>,
    /// The prefix that a gateway expects before the name of a model.
    pub model_prefix: Option<String>,
}

/// The stored JSON of a credential.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenJson<'a> {
    access_token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_prefix: Option<&'a str>,
}

impl TokenJson<'_> {
    fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a plain structure is valid JSON")
    }
}

/// The reason why a text is not a valid credential. No variant contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenParseError {
    /// The text is not a JSON object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// The credential is missing.
    #[error("it has no string `accessToken`")]
    Missing,
    /// The credential cannot be sent.
    #[error("a token is 8 to 16384 printable characters without spaces")]
    Characters,
    /// The expiry is not a valid time.
    #[error("`expiresAt` is not a number of milliseconds since 1970")]
    Expiry,
    /// The address is not valid.
    #[error("`baseUrl` cannot be used: {0}")]
    Address(BaseUrlError),
    /// The model prefix is not valid.
    #[error("`modelPrefix` has at most 128 printable characters without spaces")]
    Prefix,
}

impl AuthToken {
    const MIN_BYTES: usize = 8;
    const MAX_BYTES: usize = 16 << 10;

    /// Creates a token without metadata.
    pub fn from_secret(secret: Secret) -> Result<Self, TokenParseError> {
        let length = secret.expose().len();
        let is_token = (Self::MIN_BYTES..=Self::MAX_BYTES).contains(&length)
            && secret.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if !is_token {
            return Err(TokenParseError::Characters);
        }
        Ok(Self {
            secret,
            expires: None,
            base_url: None,
            model_prefix: None,
        })
    }

    /// Parses the stored JSON.
    pub fn from_json(text: &Secret) -> Result<Self, TokenParseError> {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(text.expose()) else {
            return Err(TokenParseError::NotAnObject);
        };
        let Some(Value::String(secret)) = fields.remove("accessToken") else {
            return Err(TokenParseError::Missing);
        };
        let mut token = Self::from_secret(Secret::new(secret))?;
        if let Some(expires) = non_null_field(&fields, "expiresAt") {
            let milliseconds = expires.as_i64().ok_or(TokenParseError::Expiry)?;
            let moment = Timestamp::from_millisecond(milliseconds);
            token.expires = Some(moment.map_err(|_| TokenParseError::Expiry)?);
        }
        if let Some(address) = non_null_field(&fields, "baseUrl") {
            let address = address.as_str().unwrap_or_default();
            token.base_url = Some(BaseUrl::parse(address).map_err(TokenParseError::Address)?);
        }
        if let Some(prefix) = non_null_field(&fields, "modelPrefix") {
            let prefix = prefix.as_str().filter(|prefix| {
                prefix.len() <= 128 && prefix.bytes().all(|byte| byte.is_ascii_graphic())
            });
            token.model_prefix = Some(prefix.ok_or(TokenParseError::Prefix)?.to_owned());
        }
        Ok(token)
    }

    /// Returns the JSON to store, in printable ASCII.
    pub fn to_json(&self) -> Secret {
        let json = TokenJson {
            access_token: self.secret.expose(),
            expires_at: self.expires.map(Timestamp::as_millisecond),
            base_url: self.base_url.as_ref().map(BaseUrl::as_str),
            model_prefix: self.model_prefix.as_deref(),
        };
        Secret::new(json.to_text())
    }

    /// Returns whether the credential has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns the remaining whole days, if the expiry is known.
    pub fn days_left(&self, now: Timestamp) -> Option<i64> {
        self.expires.map(|expires| expiry::days_left(expires, now))
    }
}

/// Returns a field that exists and is not null.
fn non_null_field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    #[test]
    fn a_stored_token_is_read_back() {
        for json in [
            r#"{"accessToken":"sk-ant-oat01-canary"}"#,
            r#"{"accessToken":"sk-ant-oat01-canary","expiresAt":1772359200000}"#,
            r#"{"accessToken":"sk-canary-0","expiresAt":1,"baseUrl":"https://gw.example:8443/x","modelPrefix":"eu/"}"#,
        ] {
            let token = AuthToken::from_json(&secret(json)).unwrap();
            assert_eq!(token.to_json().expose(), json);
            assert!(!format!("{token:?}").contains("canary"));
        }
        let more = r#" {"scopes":["a"],"accessToken":"sk-canary-0","refreshToken":"r"} "#;
        let token = AuthToken::from_json(&secret(more)).unwrap();
        assert_eq!(token.to_json().expose(), r#"{"accessToken":"sk-canary-0"}"#);
    }

    #[test]
    fn invalid_tokens_are_rejected() {
        for (json, why) in [
            ("sk-ant-oat01-canary", TokenParseError::NotAnObject),
            ("[]", TokenParseError::NotAnObject),
            ("{}", TokenParseError::Missing),
            (r#"{"accessToken":7}"#, TokenParseError::Missing),
            (r#"{"accessToken":"short"}"#, TokenParseError::Characters),
            (
                r#"{"accessToken":"with a blank"}"#,
                TokenParseError::Characters,
            ),
            (
                r#"{"accessToken":"line\nline\nline"}"#,
                TokenParseError::Characters,
            ),
            (
                r#"{"accessToken":"12345678","expiresAt":"soon"}"#,
                TokenParseError::Expiry,
            ),
            (
                r#"{"accessToken":"12345678","expiresAt":9223372036854775807}"#,
                TokenParseError::Expiry,
            ),
            (
                r#"{"accessToken":"12345678","modelPrefix":"a b"}"#,
                TokenParseError::Prefix,
            ),
            (
                r#"{"accessToken":"12345678","modelPrefix":7}"#,
                TokenParseError::Prefix,
            ),
            (
                r#"{"accessToken":"12345678","baseUrl":7}"#,
                TokenParseError::Address(BaseUrlError::Form),
            ),
            (
                r#"{"accessToken":"12345678","baseUrl":"http://gw.example"}"#,
                TokenParseError::Address(BaseUrlError::Readable),
            ),
        ] {
            assert_eq!(
                AuthToken::from_json(&secret(json)).unwrap_err(),
                why,
                "{json}"
            );
        }
    }

    #[test]
    fn a_token_expires_at_its_expiry_time() {
        let end = Timestamp::from_millisecond(5000).unwrap();
        let before = Timestamp::from_millisecond(4999).unwrap();
        let mut token = AuthToken::from_secret(secret("12345678")).unwrap();
        assert_eq!((token.is_expired(end), token.days_left(end)), (false, None));
        token.expires = Some(end);
        assert_eq!(
            (token.is_expired(before), token.days_left(before)),
            (false, Some(0))
        );
        assert_eq!(
            (token.is_expired(end), token.days_left(end)),
            (true, Some(0))
        );
    }
}
