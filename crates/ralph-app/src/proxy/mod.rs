//! The standalone credential port: `ralph proxy`, for programs that no run has started.
//!
//! It is the credential port of a gate without a sandbox. The credential comes from standard input
//! and stays in memory; programs get a placeholder that is worthless elsewhere.
//!
//! - `credential` reads standard input, `route` determines the use of the credential.
//! - `lease` is the lock: there is one proxy per agent, and a second one uses or replaces it.
//! - `health` is the text that distinguishes proxies.
//! - `serve` accepts connections until they are no longer needed, `workers` are their threads,
//!   `log` writes a line for each request.

mod credential;
mod gate;
mod health;
mod lease;
mod log;
mod route;
mod serve;
mod workers;

pub use credential::{CredentialError, ProxyCredential, read_credential};
pub use gate::{open_gate, start_error};
pub use health::{Health, source_version};
pub use lease::{Lease, LeaseError, LeaseOutcome, ProxyNotice, acquire_lease};
pub use log::RequestLog;
pub use route::{ProxyUpstream, client_variables};
pub use serve::{ProxyExit, serve};
