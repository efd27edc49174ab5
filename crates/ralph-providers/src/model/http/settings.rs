//! The settings of an HTTP model. The caller reads the environment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::Clock;
use ralph_core::secret::Secret;

use super::endpoint::ModelEndpoint;
use crate::http::ProxySettings;

/// The settings of an HTTP model.
#[derive(Clone)]
pub struct HttpModelSettings {
    /// The name used for prices and records.
    pub name: String,
    pub endpoint: ModelEndpoint,
    /// The base URL of the API.
    pub base: String,
    pub credential: Option<Arc<ApiCredential>>,
    /// Limits the length of a reply.
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub timeouts: ModelTimeouts,
    pub network: ProxySettings,
    /// Used for limits that end at a date.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for HttpModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModelSettings")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("base", &self.base)
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

/// An API key and its origin.
#[derive(Debug)]
pub struct ApiCredential {
    /// The environment variable or the store that contains the key.
    pub source: String,
    pub secret: Secret,
    pub scheme: CredentialScheme,
}

/// How a key is sent to an API that accepts two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialScheme {
    /// In the header of the API for keys.
    ApiKey,
    /// As a bearer token.
    Bearer,
}

/// Time limits for the parts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// Until the connection is established.
    pub connect: Duration,
    /// Until the first byte of the reply.
    pub first_byte: Duration,
    /// Between two chunks of a reply.
    pub idle: Duration,
    /// Until the reply is complete.
    pub total: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            total: Duration::from_mins(15),
        }
    }
}

impl ModelTimeouts {
    /// Returns the timeouts for a given total.
    #[must_use]
    pub fn for_total(total: Duration) -> Self {
        let usual = Self::default();
        Self {
            connect: usual.connect.min(total),
            // A longer total suggests a slower model.
            first_byte: usual.first_byte.max(total / 3).min(total),
            idle: usual.idle.max(total / 7).min(total),
            total,
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpModelSettingsError {
    /// The address is invalid.
    #[error("invalid API address `{base}`: {why}")]
    Base {
        /// Without a password.
        base: String,
        why: &'static str,
    },
    /// The key contains characters that are not allowed in a header.
    #[error("the key in `{variable}` contains characters that are not allowed in an HTTP header")]
    Key { variable: String },
    /// The client could not be created.
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
}
