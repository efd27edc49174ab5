//! What each event looks like to a person.
//!
//! [`of`] gives the lines of a record and [`waiting`] what the spinner says after it; both decide
//! exhaustively. The looks themselves: [`life`] for the run as a whole, `iteration` for what the
//! model does, `delivery` for commits, pull request and verification, [`budgets`] for the bars.

mod agent;
pub mod budgets;
mod circling;
mod delivery;
mod iteration;
pub mod life;
mod pieces;
mod telling;

pub use pieces::{field, findings};
pub use telling::{Style, of, waiting};
