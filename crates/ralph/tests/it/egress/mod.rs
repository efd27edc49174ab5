//! The gate around real containers, in front of an internet on this machine.
//!
//! - `room` is a sandbox behind a gate; `escapes` tries to get out of it in every way there is.
//! - `tools` lets package managers and other programs work in it as they are.
//! - `secrets` looks for credentials inside, `telling` for what is written down, `closing` ends the
//!   gate while it is used.

mod closing;
mod escapes;
mod gated_sandbox;
mod reporting;
mod secrets;
mod tools;
