//! The results of actions and iterations, and the states of a message.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[cfg(doc)]
use crate::gutter;
use crate::gutter::OutputProblems;
use crate::id::Digest;
use crate::ports::ExecStatus;

/// The result of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ActionResult {
    /// It succeeded.
    Done {
        /// The effect, in a few words.
        detail: String,
    },
    /// A command ran and ended, with success or not.
    Ran {
        ended: ExecStatus,
        /// The size of its standard output, including bytes that are not kept.
        stdout_bytes: u64,
        /// The size of its standard error, including bytes that are not kept.
        stderr_bytes: u64,
        /// The signature of its failure, see [`signature`](gutter::signature).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Digest>,
        /// The problems that it reported, if it failed.
        #[serde(default, skip_serializing_if = "OutputProblems::is_empty")]
        problems: OutputProblems,
    },
    /// It failed; nothing was changed.
    Failed { why: String },
    /// It is not allowed; nothing was changed.
    Refused {
        /// The rule that it breaks.
        why: String,
    },
    /// It was not attempted.
    Skipped { why: String },
    /// The runner ended or crashed while it ran; its effects are unknown.
    Interrupted,
}

impl ActionResult {
    /// Returns whether the action succeeded; a command must also have exited with 0.
    pub fn is_success(&self) -> bool {
        match self {
            Self::Done { .. } => true,
            Self::Ran { ended, .. } => ended.is_success(),
            Self::Failed { .. }
            | Self::Refused { .. }
            | Self::Skipped { .. }
            | Self::Interrupted => false,
        }
    }
}

/// The outcome of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum IterationOutcome {
    /// No action ended the iteration early. Some may have failed if the task continues after
    /// errors.
    Completed,
    /// An action failed or was refused; the remaining ones were not attempted.
    ActionFailed { index: usize },
    /// The model's reply could not be used.
    Unreadable,
    /// The model or the user requested a fresh iteration.
    Rotated,
    /// The model asked for the user.
    Paused,
    /// The model reported success; the verification decides.
    StopRequested,
    /// The model gave up.
    GaveUp,
    /// A budget was used up during the iteration.
    OutOfBudget,
    /// Its sandbox was lost; uncommitted changes are gone.
    SandboxLost,
    /// The agent's program ended before its work was complete.
    AgentStopped { why: String },
}

impl IterationOutcome {
    /// Returns whether the model or agent caused the outcome, rather than the user, a budget or an
    /// accident. `Rotated` does not count, because the user may have requested it.
    pub fn is_attributable_to_model(&self) -> bool {
        match self {
            Self::Completed
            | Self::ActionFailed { .. }
            | Self::Unreadable
            | Self::Paused
            | Self::StopRequested
            | Self::GaveUp
            | Self::AgentStopped { .. } => true,
            Self::Rotated | Self::OutOfBudget | Self::SandboxLost => false,
        }
    }
}

/// The state of a user's message to the agent or model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// It waits to be delivered.
    Queued,
    /// It was sent to the agent's program, or is part of the prompt that is built next.
    Delivered,
    /// The agent's program has acknowledged it, or the model or agent has read the prompt with it.
    Acknowledged,
}
