//! The gate of a run, joined to the sandboxes that it is the only way out of.
//!
//! - [`Door`] carries connections from inside of a sandbox to the gate, and tells commands where it is.
//! - [`Keeper`] is what the run knows of its gate: news, budgets, one more host.
//! - [`Opening`] makes one from the plan of a run; [`Port`] is for agents without a container.
//! - `records` is the file with the decisions; `flood` summarises them where they are too many.

mod authorities;
mod door;
mod flood;
mod keeper;
mod open;
mod port;
mod records;

pub use authorities::known_authorities;
pub use door::Door;
pub use keeper::Keeper;
pub use open::{Opening, OpeningError};
pub use port::Port;
pub use ralph_core::ports::CREDENTIALS;
pub use records::Records;
