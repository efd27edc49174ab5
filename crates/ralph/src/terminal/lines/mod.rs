//! The text output for each event.
//!
//! [`event_lines`] returns the lines of a record and `activity_label` the spinner's label after
//! it; both match exhaustively. The lines are defined in [`lifecycle`] for the whole run,
//! `iteration` for the model's actions, `agent` for agent sessions and the gate, `delivery` for commits,
//! pull request and verification, `source_host` for its checks, `circling` for the doctor, `live` for live output, and [`budgets`]
//! for the bars.

mod agent;
pub mod budgets;
mod circling;
mod delivery;
mod event_lines;
mod iteration;
pub mod lifecycle;
mod live;
mod pieces;
mod setup;
mod source_host;

pub use event_lines::{Style, event_lines};
pub use live::live_line;
pub use pieces::{field_line, finding_lines};
