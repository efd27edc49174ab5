//! Errors of finding a usable credential.

use jiff::Timestamp;

use super::agent::{AgentName, AuthMode, store_command};
use super::expiry::format_date;
use super::stores::{TokenStoreError, TokenStoreKind};
use super::token::TokenParseError;
use crate::error::AppError;

/// The reason why there is no usable credential.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// No store has a credential.
    #[error("no token found for agent {agent}")]
    Missing {
        agent: AgentName,
        /// The requested mode, if any.
        mode: Option<AuthMode>,
        /// The error of a keyring that may contain a credential.
        keyring_error: Option<TokenStoreError>,
    },
    /// The credential has expired.
    #[error("token expired for agent {agent} (expired {})", format_date(*expired))]
    Expired {
        agent: AgentName,
        mode: AuthMode,
        expired: Timestamp,
    },
    /// The stored value is not a valid credential.
    #[error("the token of agent {agent} in {store} cannot be used")]
    Damaged {
        agent: AgentName,
        mode: AuthMode,
        store: TokenStoreKind,
        why: TokenParseError,
    },
    /// A store could not be used.
    #[error("cannot access the tokens of agent {agent}")]
    Store {
        agent: AgentName,
        source: TokenStoreError,
    },
    /// The requested store does not exist on this machine.
    #[error("there is no `{program}` on PATH")]
    NoKeyring {
        /// The program of the store.
        program: &'static str,
    },
}

impl TokenError {
    /// Returns the fix for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { agent, mode, .. } => format!("run: {}", store_command(agent, *mode)),
            Self::Expired { agent, mode, .. } | Self::Damaged { agent, mode, .. } => {
                format!("run: {}", store_command(agent, Some(*mode)))
            }
            Self::Store { source, .. } => source.hint(),
            Self::NoKeyring { .. } => {
                "install it, or store the token in a file with `--store file`".to_owned()
            }
        }
    }
}

impl From<TokenError> for AppError {
    fn from(error: TokenError) -> Self {
        let fix = error.hint();
        let why = match &error {
            TokenError::Missing { keyring_error, .. } => keyring_error
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
            TokenError::Expired { .. } => String::new(),
            TokenError::Damaged { why, .. } => why.to_string(),
            TokenError::Store { source, .. } => source.to_string(),
            TokenError::NoKeyring { .. } => "`--store` requires it".to_owned(),
        };
        Self::runtime(error.to_string(), why, fix)
    }
}
