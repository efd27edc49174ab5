//! What every sandbox provider promises, one function per promise.
//!
//! A promise gets a sandbox of its own and speaks to it through the port alone, so the suite runs
//! against any provider whose commands are those of a Unix system: `sh`, `head`, `sleep`, `mkfifo`
//! and a way to start a session.

mod confinement;
mod contract_sandbox;
mod directories;
mod endings;
mod environment;
mod files;
mod killing;
mod lifecycle;
mod output;
mod suite;

pub use suite::sandbox_contract;
