//! The gate of a run, connected to its sandboxes as their only way out.
//!
//! - [`GateConnector`] forwards connections from inside a sandbox to the gate, and configures
//!   commands to use it.
//! - [`RunGate`] is the run's side of its gate: events, budgets, further hosts.
//! - [`GateConfig`] opens a gate from the plan of a run; [`CredentialPort`] is for agents without a
//!   container.
//! - [`egress_report`] describes the traffic of a run.
//! - `egress_log` is the file with the decisions; `egress_summary` summarizes them if there are too
//!   many.

mod agent_telemetry;
mod authorities;
mod config;
mod connector;
mod credential_port;
mod egress_log;
mod egress_report;
mod egress_summary;
mod run_gate;

pub use agent_telemetry::AgentTelemetry;
pub use authorities::trusted_authorities_pem;
pub use config::{GateConfig, OpenGateError};
pub use connector::GateConnector;
pub use credential_port::CredentialPort;
pub use egress_log::EgressLog;
pub use egress_report::{BlockedHost, EgressEntry, EgressReport, egress_report};
pub use ralph_core::ports::CREDENTIAL_ADDRESS;
pub use run_gate::RunGate;
