//! What each event looks like to a person.
//!
//! [`event_lines`] gives the lines of a record and [`waiting_label`] what the spinner says after it; both decide
//! exhaustively. The looks themselves: [`lifecycle`] for the run as a whole, `iteration` for what the
//! model does, `delivery` for commits, pull request and verification, [`budgets`] for the bars.

mod agent;
pub mod budgets;
mod circling;
mod delivery;
mod event_lines;
mod iteration;
pub mod lifecycle;
mod live;
mod pieces;

pub use event_lines::{Style, event_lines, waiting_label};
pub use live::live_line;
pub use pieces::{field_line, finding_lines};
