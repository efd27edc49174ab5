//! Why there is no credential to work with.

use jiff::Timestamp;

use super::agent::{AgentName, AuthMode, store_command};
use super::expiry::date;
use super::place::{Place, PlaceError};
use super::token::BadToken;

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
        unasked: Option<PlaceError>,
    },
    /// Its time is over.
    #[error("token expired for agent {agent} (expired {})", date(*expired))]
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
        place: Place,
        /// What is wrong with it.
        why: BadToken,
    },
    /// A place could not be used.
    #[error("the tokens of agent {agent} are out of reach")]
    Place {
        /// Whose.
        agent: AgentName,
        /// Why.
        source: PlaceError,
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
            Self::Place { source, .. } => source.hint(),
            Self::NoKeyring { .. } => {
                "install it, or keep the token in a file with `--store file`".to_owned()
            }
        }
    }
}
