//! The stand-alone port that adds credentials: `ralph proxy`, for programs that no run has started.
//!
//! It is the credential port of a gate without a sandbox. The credential comes on standard input and
//! stays in memory; programs get a stand-in that is worth nothing anywhere else.
//!
//! - `credential` reads standard input, `route` says what the credential is for.
//! - `lease` is the lock: there is one proxy for each agent, and a second one uses or replaces it.
//! - `health` is the text that tells one from another.
//! - `serve` takes connections until nobody needs them any more, `workers` are the threads they run on; `log` writes a line for each request.

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
