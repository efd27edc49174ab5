//! `ralph preflight`: checks everything that a run needs, all of it at once, and changes nothing.
//!
//! - `command` makes the checks of `check::Check::ALL` one after the other; a new one is a variant there.
//! - `ground` is what they look at, read once.
//! - `machine`, `project`, `agent`, `network` and `sandbox` hold the checks themselves.

mod agent;
mod check;
mod command;
mod machine;
mod network;
mod preflight_context;
mod project;
mod sandbox;

pub(super) use agent::describe_credential;
pub(super) use command::run;
pub(super) use network::{describe_policy, gate_error};
