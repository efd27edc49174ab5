//! Commands to runs, with or without a process that works on them.
//!
//! - [`steer`] changes how a run continues: pause, resume, rotate, stop, another profile or task.
//! - [`send_command`] requests an action: a note, a message, a diagnosis, an allowed host.
//!   [`send_keyed_command`] does it once per key of the caller.
//! - [`available_commands`] and [`command_rejection`] tell which commands a run accepts.
//! - [`propose_task`], [`propose_edit`], [`allow_for_run`], [`allow_for_project`] and [`debug_commands`] prepare commands.

mod allow_host;
mod availability;
mod debug_commands;
mod propose_edit;
mod propose_task;
mod run_owner;
mod send_command;
mod steer;

pub use allow_host::{AllowScope, allow_for_project, allow_for_run, parse_host};
pub use availability::{
    CommandAvailability, CommandRejection, allowed_commands, available_commands, command_rejection,
};
pub use debug_commands::{DebugCommand, debug_commands};
pub use propose_edit::propose_edit;
pub use propose_task::{ProposedTask, propose_task};
pub(crate) use run_owner::describe_owner;
pub use send_command::{
    SentCommandOutcome, command_failed, find_keyed_command, send_command, send_keyed_command,
};
pub use steer::{SteerReport, refused_error, require_profile, steer};
