//! What an HTTP model is made from. The caller has read the environment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ralph_core::ports::Clock;
use ralph_core::secret::Secret;

use super::endpoint::ModelEndpoint;
use crate::http::ProxySettings;

/// What an HTTP model is made from.
#[derive(Clone)]
pub struct HttpModelSettings {
    /// The name that prices and records go by.
    pub name: String,
    /// How the model is reached.
    pub endpoint: ModelEndpoint,
    /// Where its API is.
    pub base: String,
    /// What it is asked with.
    pub credential: Option<Arc<ApiCredential>>,
    /// How long an answer may be.
    pub max_output_tokens: Option<u32>,
    /// How much chance is in the answer.
    pub temperature: Option<f64>,
    /// How long things may take.
    pub timeouts: ModelTimeouts,
    /// The way to the network.
    pub network: ProxySettings,
    /// The time, for limits that end at a date.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for HttpModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .field("base", &self.base)
            .field("credential", &self.credential)
            .finish_non_exhaustive()
    }
}

/// A key and where it is from.
#[derive(Debug)]
pub struct ApiCredential {
    /// The environment variable that holds it.
    pub variable: String,
    /// The key.
    pub secret: Secret,
}

/// How long the parts of a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the answer begins.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// Until the answer is complete.
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
    /// Returns timeouts for calls that may take this long.
    #[must_use]
    pub fn for_total(total: Duration) -> Self {
        let usual = Self::default();
        Self {
            connect: usual.connect.min(total),
            // Somebody who waits longer for the whole also has a slower model.
            first_byte: usual.first_byte.max(total / 3).min(total),
            idle: usual.idle.max(total / 7).min(total),
            total,
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpModelSettingsError {
    /// The address is none.
    #[error("`{base}` is not the address of an API: {why}")]
    Base {
        /// The address, without a password.
        base: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The key has characters that no header may have.
    #[error("the key in `{variable}` has characters that no key has")]
    Key {
        /// The variable.
        variable: String,
    },
    /// The client cannot be made.
    #[error("cannot make an HTTP client: {0}")]
    Client(String),
}
