//! Events of the user's commands.

use serde::{Deserialize, Serialize};

use super::MessageState;
use crate::run::Command;

/// A command of the user, and its effects that need no iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CommandEvent {
    /// A command was accepted or rejected.
    CommandReceived {
        id: String,
        command: Command,
        refused: Option<String>,
    },
    /// A command that needs execution has succeeded or failed.
    CommandDone {
        id: String,
        done: bool,
        detail: String,
        /// The end of the output, for a command that prints.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// Commands in the sandbox may reach this host from now on.
    HostAllowed { host: String },
    /// A message to the agent or model has a new state.
    MessageMoved {
        id: String,
        text: String,
        to: MessageState,
    },
}

impl CommandEvent {
    pub(super) const TYPES: &[&str] = &[
        "command_received",
        "command_done",
        "host_allowed",
        "message_moved",
    ];
}
