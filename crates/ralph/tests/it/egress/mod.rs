//! The gate around real containers, connected to a fake internet on this machine.
//!
//! - `gated_sandbox` is a sandbox behind a gate; `escapes` tries to get out of it in every way.
//! - `tools` runs unmodified package managers and other programs in it.
//! - `secrets` searches for credentials inside, `reporting` checks the records, `closing` closes
//!   the gate while it is in use.

mod closing;
mod escapes;
mod gated_sandbox;
mod reporting;
mod secrets;
mod setup;
mod tools;
