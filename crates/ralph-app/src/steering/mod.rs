//! Commands to runs, with or without a process that works on them.
//!
//! - [`steer`] changes how a run continues: pause, resume, rotate, stop, another profile or task.
//! - [`send_command`] requests an action: a note, a message, a diagnosis, an allowed host.

mod run_owner;
mod send_command;
mod steer;

pub(crate) use run_owner::describe_owner;
pub use send_command::{SentCommandOutcome, command_failed, send_command};
pub use steer::{SteerReport, refused_error, require_profile, steer};
