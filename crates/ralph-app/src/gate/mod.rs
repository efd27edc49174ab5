//! The gate of a run, joined to the sandboxes that it is the only way out of.
//!
//! - [`GateConnector`] carries connections from inside of a sandbox to the gate, and tells commands where it is.
//! - [`RunGate`] is what the run knows of its gate: news, budgets, one more host.
//! - [`GateConfig`] makes one from the plan of a run; [`CredentialPort`] is for agents without a container.
//! - `records` is the file with the decisions; `flood` summarises them where they are too many.

mod authorities;
mod config;
mod connector;
mod credential_port;
mod egress_log;
mod egress_summary;
mod run_gate;

pub use authorities::trusted_authorities_pem;
pub use config::{GateConfig, OpenGateError};
pub use connector::GateConnector;
pub use credential_port::CredentialPort;
pub use egress_log::EgressLog;
pub use ralph_core::ports::CREDENTIAL_ADDRESS;
pub use run_gate::RunGate;
