//! The life of a run: its statuses, the commands people send, and which is allowed when.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::advice::{Guardrail, Note};
use crate::budget::Budget;
use crate::id::Digest;
use crate::task::RunMode;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum RunStatus {
    /// It exists, nothing has been started.
    Created,
    /// Its sandbox and branch are being made.
    Preparing,
    /// It iterates.
    Running,
    /// It waits for a person.
    Paused(PauseReason),
    /// It waits until the model's usage limit is reset, and goes on by itself.
    WaitingQuota(QuotaWait),
    /// The model's provider is not available; the run tries again by itself.
    WaitingProvider(ProviderWait),
    /// Its commit is being checked in a clean room.
    Verifying,
    /// Its pull request holds a verified commit.
    Succeeded,
    /// It ended without success.
    Failed(FailReason),
    /// A person ended it.
    Stopped,
    /// Its sandbox is gone.
    SandboxLost,
}

/// Why a run waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PauseReason {
    /// A person asked for it.
    Person,
    /// The program was told to end (Ctrl-C, SIGTERM).
    Interrupted,
    /// The model asks for a decision.
    Model {
        /// The model's words.
        question: String,
    },
    /// It goes in circles, and everything else has been tried.
    Gutter {
        /// How often in a row.
        consecutive: u32,
        /// Why it looks like that.
        evidence: String,
    },
    /// Existing tests were changed, and the task wants a person to approve that.
    TestChanges {
        /// The changed files and what happened to each.
        changes: Vec<String>,
        /// The digest of the changes; resuming the run approves exactly these.
        digest: Digest,
    },
    /// Something outside is broken.
    Broken {
        /// What is broken, and why.
        what: String,
        /// What to do about it.
        fix: String,
    },
}

/// What a run waits for that has reached a usage limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaWait {
    /// When the model is asked again.
    pub until: jiff::Timestamp,
    /// Which limit, in the provider's words.
    pub why: String,
}

/// A wait for a model provider that is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderWait {
    /// When the next attempt starts.
    pub until: jiff::Timestamp,
    /// The last error, in the provider's words.
    pub why: String,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FailReason {
    /// A budget is used up.
    Budget {
        /// Which one.
        budget: Budget,
    },
    /// The model gave up.
    Model {
        /// The model's words.
        reason: String,
    },
    /// It goes in circles, and nobody and nothing could help.
    Gutter {
        /// How often in a row.
        consecutive: u32,
        /// How often is allowed.
        limit: u32,
    },
    /// The run could not be set up at all.
    Setup {
        /// Why not.
        why: String,
    },
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("paused by a person"),
            Self::Interrupted => f.write_str("the program was told to end"),
            Self::Model { question } => write!(f, "the model asks: {question}"),
            Self::Gutter {
                consecutive,
                evidence,
            } => write!(
                f,
                "it goes in circles, {consecutive} times in a row: {evidence}"
            ),
            Self::TestChanges { changes, .. } => write!(
                f,
                "existing tests were changed: {} — resuming the run approves exactly these changes",
                changes.join("; ")
            ),
            Self::Broken { what, fix } => write!(f, "{what} — {fix}"),
        }
    }
}

impl fmt::Display for QuotaWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "{}; the model is asked again at {until}", self.why)
    }
}

impl fmt::Display for ProviderWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "{}; next attempt at {until}", self.why)
    }
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { budget } => write!(f, "the budget `{}` is used up", budget.key()),
            Self::Model { reason } => write!(f, "the model gave up: {reason}"),
            Self::Gutter { consecutive, limit } => write!(
                f,
                "it goes in circles: {consecutive} times in a row, `max_consecutive_gutter` is {limit}"
            ),
            Self::Setup { why } => write!(f, "it could not be set up: {why}"),
        }
    }
}

impl RunStatus {
    /// Returns the one word that scripts and lists show.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Paused(_) => "paused",
            Self::WaitingQuota(_) => "waiting_quota",
            Self::WaitingProvider(_) => "waiting_provider",
            Self::Verifying => "verifying",
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Stopped => "stopped",
            Self::SandboxLost => "sandbox_lost",
        }
    }

    /// Returns the reason in one line, where the status has one.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Paused(reason) => Some(reason.to_string()),
            Self::Failed(reason) => Some(reason.to_string()),
            Self::WaitingQuota(wait) => Some(wait.to_string()),
            Self::WaitingProvider(wait) => Some(wait.to_string()),
            Self::SandboxLost => Some("the sandbox is gone; what was committed is kept".into()),
            Self::Created
            | Self::Preparing
            | Self::Running
            | Self::Verifying
            | Self::Succeeded
            | Self::Stopped => None,
        }
    }

    /// Tells whether nothing can follow any more.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Succeeded | Self::Failed(_) | Self::Stopped => true,
            Self::Created
            | Self::Preparing
            | Self::Running
            | Self::Paused(_)
            | Self::WaitingQuota(_)
            | Self::WaitingProvider(_)
            | Self::Verifying
            | Self::SandboxLost => false,
        }
    }

    /// Tells whether a process has it, if one is alive: one that works on it, or one that waits to go on.
    pub fn needs_process(&self) -> bool {
        self.is_active() || matches!(self, Self::WaitingQuota(_) | Self::WaitingProvider(_))
    }

    /// Tells whether a process works on it, if one is alive.
    pub fn is_active(&self) -> bool {
        match self {
            Self::Created | Self::Preparing | Self::Running | Self::Verifying => true,
            Self::Paused(_)
            | Self::WaitingQuota(_)
            | Self::WaitingProvider(_)
            | Self::Succeeded
            | Self::Failed(_)
            | Self::Stopped
            | Self::SandboxLost => false,
        }
    }
}

/// What a person can tell a run. Nothing else reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Wait at the next action.
    Pause,
    /// Go on.
    Resume,
    /// End this iteration at the next action and start a fresh one.
    Rotate,
    /// End the run; the sandbox is kept for a look.
    Stop,
    /// Ask the model of another profile from the next iteration on.
    Profile {
        /// The profile.
        name: String,
    },
    /// Put a changed task file in force before the next iteration.
    Task {
        /// The digest of the contract, which is kept in the run's directory under it.
        contract: Digest,
    },
    /// Add a hint to the notes.
    Note(Note),
    /// Add a sign to the guardrails.
    Guardrail(Guardrail),
    /// Let the doctor look at the run.
    Diagnose,
    /// Do what the doctor's last report proposes.
    Apply,
    /// Start something by an id of the contract.
    Debug {
        /// The id; there is no way to send a command line.
        id: String,
    },
    /// Let commands in the sandbox reach a host from now on.
    AllowHost {
        /// The host, as an allowlist writes it: `name`, `*.name`, `name:port`.
        host: String,
    },
    /// Tell something to who does the work.
    Message {
        /// The words.
        text: String,
    },
}

impl Command {
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
        }
    }

    /// Tells whether something has to be done for it besides changing the run's course.
    pub fn needs_execution(&self) -> bool {
        match self {
            Self::Pause
            | Self::Resume
            | Self::Rotate
            | Self::Stop
            | Self::Profile { .. }
            | Self::Task { .. } => false,
            Self::Note(_)
            | Self::Guardrail(_)
            | Self::Diagnose
            | Self::Apply
            | Self::Debug { .. }
            | Self::AllowHost { .. }
            | Self::Message { .. } => true,
        }
    }
}

/// Decides whether a command makes sense now, and whether the run's mode lets people give it. The
/// refusal says why not.
pub fn legal(status: &RunStatus, mode: RunMode, command: &Command) -> Result<(), &'static str> {
    use Command as C;
    use RunMode as M;
    use RunStatus as S;
    match (status, mode, command) {
        (S::Succeeded, _, _) => Err("it has succeeded"),
        (S::Failed(_), _, _) => Err("it has failed"),
        (S::Stopped, _, _) => Err("it was stopped"),

        (_, M::Autonomous, C::Note(_)) => {
            Err("its mode is `autonomous`; notes need `mode: guided` in the task file")
        }
        (_, M::Autonomous, C::Message { .. }) => {
            Err("its mode is `autonomous`; messages need `mode: guided` in the task file")
        }
        (_, M::Autonomous | M::Guided, C::Debug { .. }) => {
            Err("debugging needs `mode: debug` in the task file")
        }

        (S::Created | S::Preparing | S::Running | S::Verifying, _, C::Pause | C::Stop)
        | (S::Running, _, C::Rotate)
        | (S::WaitingQuota(_) | S::WaitingProvider(_), _, C::Pause | C::Resume | C::Stop)
        | (S::Paused(_) | S::SandboxLost, _, C::Resume | C::Stop)
        | (_, _, C::Guardrail(_) | C::Profile { .. } | C::Task { .. } | C::AllowHost { .. })
        | (_, M::Guided | M::Debug, C::Note(_) | C::Message { .. })
        | (
            S::Running
            | S::Verifying
            | S::WaitingQuota(_)
            | S::WaitingProvider(_)
            | S::Paused(_)
            | S::SandboxLost,
            _,
            C::Diagnose | C::Apply,
        )
        | (
            S::Running | S::Verifying | S::WaitingQuota(_) | S::WaitingProvider(_) | S::Paused(_),
            M::Debug,
            C::Debug { .. },
        ) => Ok(()),

        (S::Created | S::Preparing | S::Running | S::Verifying, _, C::Resume) => {
            Err("it is not paused")
        }
        (S::Created | S::Preparing, _, C::Rotate | C::Diagnose | C::Apply | C::Debug { .. }) => {
            Err("it has not started an iteration yet")
        }
        (S::WaitingQuota(_), _, C::Rotate) => Err("it waits for the end of a usage limit"),
        (S::WaitingProvider(_), _, C::Rotate) => Err("it waits for the model's provider"),
        (S::Verifying, _, C::Rotate) => Err("its commit is being verified"),
        (S::Paused(_), _, C::Pause) => Err("it is paused already"),
        (S::Paused(_), _, C::Rotate) => Err("it is paused; it has to be resumed first"),
        (S::SandboxLost, _, C::Pause | C::Rotate | C::Debug { .. }) => Err("its sandbox is gone"),
    }
}

#[cfg(test)]
mod tests;
