//! The credentials of agents: where they are kept, how long they hold, whether their API takes them.
//!
//! The commands `store-token`, `check-token` and `get-token` come here, and everything that starts an
//! agent asks [`TokenStorage::find_valid`]. A credential is a [`Secret`](ralph_core::secret::Secret) from the
//! moment it is read: no argument list, log or error ever holds one.
//!
//! - [`TokenSlot`] is which credential is meant: an agent's name and a way to authenticate.
//! - [`AuthToken`] is the credential with what is known about it, and the JSON that is kept.
//! - [`TokenStorage`] finds and keeps them, in one of the places of `place`: the macOS keychain, the Linux
//!   keyring behind `secret-tool`, or a file. The environment is a place that is only read.
//! - [`validate`] asks the API, before anything is kept.

mod agent;
mod base_url;
mod error;
mod expiry;
pub mod http;
mod probe;
pub mod stores;
mod token;
mod token_storage;

pub use agent::{AgentAuth, AgentName, AgentWire, AuthMode, TokenSlot, store_command};
pub use base_url::{BaseUrl, BaseUrlError};
pub use error::TokenError;
pub use expiry::{default_expiry, format_date};
pub use probe::{ProbeError, validate};
pub use token::{AuthToken, TokenParseError};
pub use token_storage::{FoundToken, SavedToken, StoreSelection, TokenSources, TokenStorage};
