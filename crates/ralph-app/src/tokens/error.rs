//! Why there is no credential to work with.

use jiff::Timestamp;

use super::agent::{AgentName, AuthMode, store_command};
use super::expiry::format_date;
use super::stores::{TokenStoreError, TokenStoreKind};
use super::token::TokenParseError;
use crate::error::AppError;

/// Why there is no credential to work with.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// There is none anywhere.
    #[error("no token found for agent {agent}")]
    Missing {
        /// Whose.
        agent: AgentName,
        /// For what, if somebody said.
        mode: Option<AuthMode>,
        /// Why a keyring that might have one could not be asked.
        unasked: Option<TokenStoreError>,
    },
    /// Its time is over.
    #[error("token expired for agent {agent} (expired {})", format_date(*expired))]
    Expired {
        /// Whose.
        agent: AgentName,
        /// For what.
        mode: AuthMode,
        /// Since when.
        expired: Timestamp,
    },
    /// What is kept is no credential.
    #[error("the token of agent {agent} in {place} cannot be used")]
    Damaged {
        /// Whose.
        agent: AgentName,
        /// For what.
        mode: AuthMode,
        /// Where it is.
        place: TokenStoreKind,
        /// What is wrong with it.
        why: TokenParseError,
    },
    /// A place could not be used.
    #[error("the tokens of agent {agent} are out of reach")]
    Store {
        /// Whose.
        agent: AgentName,
        /// Why.
        source: TokenStoreError,
    },
    /// The place that was asked for is not on this machine.
    #[error("there is no `{program}` on PATH")]
    NoKeyring {
        /// The program behind it.
        program: &'static str,
    },
}

impl TokenError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { agent, mode, .. } => format!("run: {}", store_command(agent, *mode)),
            Self::Expired { agent, mode, .. } | Self::Damaged { agent, mode, .. } => {
                format!("run: {}", store_command(agent, Some(*mode)))
            }
            Self::Store { source, .. } => source.hint(),
            Self::NoKeyring { .. } => {
                "install it, or keep the token in a file with `--store file`".to_owned()
            }
        }
    }
}

impl From<TokenError> for AppError {
    fn from(error: TokenError) -> Self {
        let fix = error.hint();
        let why = match &error {
            TokenError::Missing { unasked, .. } => unasked
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
            TokenError::Expired { .. } => String::new(),
            TokenError::Damaged { why, .. } => why.to_string(),
            TokenError::Store { source, .. } => source.to_string(),
            TokenError::NoKeyring { .. } => "`--store` asks for it".to_owned(),
        };
        Self::runtime(error.to_string(), why, fix)
    }
}
