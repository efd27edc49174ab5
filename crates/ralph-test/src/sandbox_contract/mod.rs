//! The contract of sandbox providers, one function per guarantee.
//!
//! Each check gets its own sandbox and uses it only through the port, so the suite runs against any
//! provider with Unix commands: `sh`, `head`, `sleep`, `mkfifo` and a way to start a session.

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
