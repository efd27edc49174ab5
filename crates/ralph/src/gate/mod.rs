//! The gate of a run, joined to the sandboxes that it is the only way out of.
//!
//! - [`Door`] carries connections from inside of a sandbox to the gate, and tells commands where it is.
//! - [`Keeper`] is what the run knows of its gate: news, budgets, one more host.
//! - `records` is the file with one line for each decision.

mod door;
mod keeper;
mod records;

pub use door::{CREDENTIALS, Door};
pub use keeper::Keeper;
pub use records::Records;
