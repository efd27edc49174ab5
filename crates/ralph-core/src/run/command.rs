//! The commands that the user sends to a run, and when each takes effect.

use serde::{Deserialize, Serialize};

use crate::advice::{Guardrail, Note};
use crate::budget::BudgetLimits;
use crate::id::Digest;
use crate::path::WorkspacePath;
use crate::task::RunMode;

/// A command of the user to a run. There is no other way to influence it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Wait at the next action.
    Pause,
    /// Continue.
    Resume,
    /// Cancel a model call in progress, or else end this iteration at the next action; then start a
    /// fresh one.
    Rotate,
    /// End the run; the sandbox is kept for inspection.
    Stop,
    /// Use the model of another profile from the next iteration.
    Profile {
        /// The name of the profile.
        name: String,
    },
    /// Put a changed task file in force before the next iteration.
    Task {
        /// The digest of the contract, which names its file in the run's directory.
        contract: Digest,
    },
    /// Add a hint to the notes.
    Note(Note),
    /// Add an entry to the guardrails.
    Guardrail(Guardrail),
    /// Consult the doctor.
    Diagnose,
    /// Apply the doctor's last report.
    Apply,
    /// Run a command that the contract names.
    Debug {
        /// The id of the command in the contract; a command line cannot be sent.
        id: String,
    },
    /// Allow commands in the sandbox to reach a host from now on.
    AllowHost {
        /// The host as an entry of an allowlist: `name`, `*.name`, `name:port`.
        host: String,
    },
    /// Send a message to the agent or model.
    Message {
        /// The text of the message.
        text: String,
    },
    /// Answer the question of a paused run and continue it.
    Answer {
        /// The text of the answer.
        text: String,
    },
    /// Change how far the user may intervene, from the next iteration.
    Mode {
        /// The new mode.
        mode: RunMode,
    },
    /// Replace or create a file of the workspace, or replace the notes.
    Edit(FileEdit),
    /// Set these budgets; those that are `None` stay. A run that failed because a budget was used up
    /// can continue afterwards.
    Limits(BudgetLimits),
}

/// A new content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    pub path: WorkspacePath,
    /// The digest of the new content, which names its file in the run's directory.
    pub content: Digest,
    /// The digest of the content that the user saw; `None` if there was no such file.
    pub replaces: Option<Digest>,
}

/// When the process that works on a run applies an accepted command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandTiming {
    /// On receipt, also while an action or an agent runs.
    Immediate,
    /// At the next action. An agent's session has no actions: pause and rotate end it, other commands
    /// wait for its end.
    NextAction,
    /// Before the next iteration, because the command changes files that the model may also change, or
    /// costs money.
    NextIteration,
}

/// How a command is applied to a run that no process works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfflineCommand {
    /// It is rejected: it controls a process.
    NeedsProcess,
    /// The sender records it, and the next process applies it.
    Recorded,
    /// The sender ends the run.
    EndsRun,
    /// The sender executes it. The journal and the activity log suffice.
    Journaled,
    /// The sender executes it with the run's files, contract and sandbox.
    Executed,
    /// The sender executes it, and calls the model.
    CallsModel,
}

/// When and how a command takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTraits {
    /// When the process that works on the run applies it.
    pub timing: CommandTiming,
    /// How it is applied if no process works on the run.
    pub offline: OfflineCommand,
    /// Whether it can take minutes; the sender waits for its result.
    pub is_slow: bool,
}

impl Command {
    /// Returns whether the next prompts contain the command's text.
    pub fn is_advice(&self) -> bool {
        matches!(self, Self::Note(_) | Self::Guardrail(_))
    }

    /// Returns the verb that the command line uses.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Rotate => "rotate",
            Self::Stop => "stop",
            Self::Profile { .. } => "profile",
            Self::Task { .. } => "task",
            Self::Note(_) => "note",
            Self::Guardrail(_) => "guardrail",
            Self::Diagnose => "diagnose",
            Self::Apply => "apply",
            Self::Debug { .. } => "debug",
            Self::AllowHost { .. } => "allow",
            Self::Message { .. } => "message",
            Self::Answer { .. } => "answer",
            Self::Mode { .. } => "mode",
            Self::Edit(_) => "edit",
            Self::Limits(_) => "continue",
        }
    }

    /// Returns when and how it takes effect: the one table that the engine and the command line use.
    pub fn traits(&self) -> CommandTraits {
        use CommandTiming as T;
        use OfflineCommand as O;
        let (timing, offline, is_slow) = match self {
            Self::Pause | Self::Rotate => (T::NextAction, O::NeedsProcess, false),
            Self::Resume => (T::Immediate, O::NeedsProcess, false),
            Self::Stop => (T::Immediate, O::EndsRun, false),
            Self::Profile { .. } | Self::Task { .. } | Self::Mode { .. } => {
                (T::NextIteration, O::Recorded, false)
            }
            Self::Note(_) | Self::Edit(_) => (T::NextAction, O::Executed, false),
            Self::Guardrail(_) | Self::Apply => (T::NextIteration, O::Executed, false),
            Self::Diagnose => (T::NextIteration, O::CallsModel, true),
            Self::Debug { .. } => (T::NextAction, O::Executed, true),
            Self::AllowHost { .. }
            | Self::Message { .. }
            | Self::Answer { .. }
            | Self::Limits(_) => (T::Immediate, O::Journaled, false),
        };
        CommandTraits {
            timing,
            offline,
            is_slow,
        }
    }

    /// Returns whether it is executed and has a result, instead of changing the course of the run.
    pub fn needs_execution(&self) -> bool {
        match self.traits().offline {
            OfflineCommand::NeedsProcess | OfflineCommand::Recorded | OfflineCommand::EndsRun => {
                false
            }
            OfflineCommand::Journaled | OfflineCommand::Executed | OfflineCommand::CallsModel => {
                true
            }
        }
    }

    /// Describes the effect of the accepted command for the user.
    pub fn effect(&self, has_agent: bool) -> String {
        let when = match self.traits().timing {
            CommandTiming::Immediate => "immediately",
            CommandTiming::NextAction if has_agent => "after the agent's session",
            CommandTiming::NextAction => "at the next action",
            CommandTiming::NextIteration => "before the next iteration",
        };
        let effect = match self {
            Self::Pause if has_agent => "the agent pauses and its work is kept".to_owned(),
            Self::Pause => format!("the run pauses {when}"),
            Self::Resume => "the run continues".to_owned(),
            Self::Rotate if has_agent => {
                "the agent is stopped, and a fresh iteration starts".to_owned()
            }
            Self::Rotate => {
                format!("a model call is cancelled, otherwise a fresh iteration starts {when}")
            }
            Self::Stop => "the sandbox is kept for inspection".to_owned(),
            Self::Profile { .. } => "its model is used from the next iteration on".to_owned(),
            Self::Task { .. } | Self::Mode { .. } => {
                "it applies from the next iteration on".to_owned()
            }
            Self::Answer { .. } => "the run continues with it".to_owned(),
            Self::Diagnose => format!("the doctor is consulted {when}"),
            Self::Limits(_) if has_agent => {
                "the budgets apply from the agent's next session on".to_owned()
            }
            Self::Limits(_) => format!("the budgets apply {when}"),
            Self::Note(_)
            | Self::Edit(_)
            | Self::Guardrail(_)
            | Self::Apply
            | Self::Debug { .. }
            | Self::AllowHost { .. }
            | Self::Message { .. } => format!("it takes effect {when}"),
        };
        format!("{} accepted; {effect}", self.verb())
    }
}
