//! How things ended: actions, iterations, and the way of a message.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::gutter;
use crate::gutter::OutputProblems;
use crate::id::Digest;
use crate::ports::ExecStatus;

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ActionResult {
    /// It did what it should.
    Done {
        /// What exactly, in a few words.
        detail: String,
    },
    /// A command ran to its end, good or bad.
    Ran {
        /// How it ended.
        ended: ExecStatus,
        /// Bytes on standard output, kept or not.
        stdout_bytes: u64,
        /// Bytes on standard error, kept or not.
        stderr_bytes: u64,
        /// What its failure looks like, see [`signature`](gutter::signature).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Digest>,
        /// The problems that it reported, if it failed.
        #[serde(default, skip_serializing_if = "OutputProblems::is_empty")]
        problems: OutputProblems,
    },
    /// It could not be done; nothing was changed.
    Failed {
        /// Why not.
        why: String,
    },
    /// It is not allowed; nothing was changed.
    Refused {
        /// The rule it breaks.
        why: String,
    },
    /// It was not tried.
    Skipped {
        /// Why not.
        why: String,
    },
    /// The program ended or died while it ran; what it did until then is unknown.
    Interrupted,
}

impl ActionResult {
    /// Tells whether the actions after it may still be performed.
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

/// How an iteration ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum IterationOutcome {
    /// All actions were performed.
    Completed,
    /// An action failed or was refused, the rest was not tried.
    ActionFailed {
        /// Which one.
        index: usize,
    },
    /// The model's reply could not be used.
    Unreadable,
    /// The model or a person wanted a fresh start.
    Rotated,
    /// The model asked for a person.
    Paused,
    /// The model said it is done; whether that was true is told by the verification.
    StopRequested,
    /// The model gave up.
    GaveUp,
    /// A budget was used up on the way.
    OutOfBudget,
    /// Its sandbox was lost on the way; what was not committed is gone.
    SandboxLost,
    /// The agent's program did not do its work to the end.
    AgentStopped {
        /// Why not.
        why: String,
    },
}

impl IterationOutcome {
    /// Tells whether it says something about who did the work; no person and no accident ended it.
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

/// Where a person's message to an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// It waits for the agent.
    Queued,
    /// It was handed to the agent's program, or is in the next prompt.
    Delivered,
    /// The agent's program has taken it up.
    Acknowledged,
}
