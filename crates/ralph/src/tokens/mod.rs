//! The credentials of agents: where they are kept, how long they hold, whether their API takes them.
//!
//! The commands `store-token`, `check-token` and `get-token` come here, and everything that starts an
//! agent asks [`Tokens::ensure`]. A credential is a [`Secret`](ralph_core::secret::Secret) from the
//! moment it is read: no argument list, log or error ever holds one.
//!
//! - [`Slot`] is which credential is meant: an agent's name and a way to authenticate.
//! - [`Token`] is the credential with what is known about it, and the JSON that is kept.
//! - [`Tokens`] finds and keeps them, in one of the places of `place`: the macOS keychain, the Linux
//!   keyring behind `secret-tool`, or a file. The environment is a place that is only read.
//! - [`validate`] asks the API, before anything is kept.
//! - `typed`, `setup` and `piped` are the three ways in which `store-token` gets one.

mod address;
mod agent;
mod custody;
mod error;
mod expiry;
pub(crate) mod http;
mod piped;
pub mod place;
mod probe;
mod setup;
mod terminal;
mod token;
mod typed;

pub use address::{BadAddress, BaseUrl};
pub use agent::{Agent, AgentName, AuthMode, Slot, Wire, store_command};
pub use custody::{Among, Found, Kept, Sources, Tokens};
pub use error::TokenError;
pub use expiry::{date, default_expiry};
pub use piped::{Given, GivenError, read_piped};
pub use probe::{ProbeError, validate};
pub use setup::{SetupError, setup_token};
pub use token::Token;
pub use typed::{TypedError, ask};
