//! The credentials of agents: storage, expiry and validation with their API.
//!
//! The commands `store-token`, `check-token` and `get-token` use this module, and everything that
//! starts an agent calls [`TokenStorage::find_valid`]. A credential is a
//! [`Secret`](ralph_core::secret::Secret) from the moment it is read: no argument list, log or
//! error ever contains one.
//!
//! - [`TokenSlot`] identifies a credential by agent and authentication mode.
//! - [`AuthToken`] is a credential with its metadata, and its stored JSON.
//! - [`TokenStorage`] finds and stores them in one of `stores`: the macOS keychain, the Linux
//!   keyring behind `secret-tool`, or a file. The environment is a read-only store.
//! - [`validate`] asks the API before anything is stored.

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
pub use expiry::format_date;
pub use probe::{GITHUB_API, ProbeError, validate};
pub use token::{AuthToken, TokenParseError};
pub use token_storage::{
    FoundToken, SavedToken, StoreSelection, TokenSearch, TokenSources, TokenStorage,
};
