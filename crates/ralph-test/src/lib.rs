//! Fixtures and contract suites for the tests of the other crates.
//!
//! - [`sandbox_contract`] holds a sandbox provider to every promise of the port.
//! - [`Collect`] keeps what a command printed.

mod collect;
mod sandbox_contract;

pub use collect::Collect;
pub use sandbox_contract::sandbox_contract;
