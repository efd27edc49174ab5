//! The statuses of a run, the commands of the user, and the commands that each status allows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::id::{CommitId, Digest};
use crate::task::RunMode;

mod command;

pub use command::{Command, CommandTiming, CommandTraits, FileEdit, OfflineCommand};

/// The status of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum RunStatus {
    /// It exists; nothing has been started.
    Created,
    /// Its sandbox and branch are being created.
    Preparing,
    /// It iterates.
    Running,
    /// It waits for the user.
    Paused(PauseReason),
    /// It waits until the model's usage limit is reset, and continues by itself.
    WaitingQuota(QuotaWait),
    /// The model's provider is not available; the run tries again by itself.
    WaitingProvider(ProviderWait),
    /// It waits for the checks of its commit at the source host.
    WaitingCi(CiWait),
    /// The source host is not available or limits requests; the run tries again by itself.
    WaitingHost(HostWait),
    /// Its commit is being verified in a clean room.
    Verifying,
    /// Its last commit is verified and delivered.
    Succeeded,
    /// It ended without success.
    Failed(FailReason),
    /// The user ended it.
    Stopped,
    /// Its sandbox is gone.
    SandboxLost,
}

/// Why a run is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PauseReason {
    /// The user paused it.
    Person,
    /// The program was interrupted (Ctrl-C, SIGTERM).
    Interrupted,
    /// The model asks for a decision.
    Model {
        /// The model's question.
        question: String,
    },
    /// It is circling, and every other mitigation has been tried.
    Gutter {
        /// The number of consecutive circling iterations.
        consecutive: u32,
        /// The evidence for circling.
        evidence: String,
    },
    /// Existing tests were changed, and the task requires the user's approval.
    TestChanges {
        /// The changed files, each with its change.
        changes: Vec<String>,
        /// The digest of the changes; resuming the run approves exactly these.
        digest: Digest,
    },
    /// The program crashed at the same place too often.
    CrashLoop {
        /// The number of crashes and the place.
        what: String,
        /// The suggested fix.
        fix: String,
    },
    /// Something outside of the run is broken.
    Broken {
        /// The problem and its cause.
        what: String,
        /// The suggested fix.
        fix: String,
    },
}

/// A wait for the reset of a usage limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaWait {
    /// When the model is called again.
    pub until: jiff::Timestamp,
    /// The limit, in the provider's words.
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

/// A wait for the checks of a commit at the source host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiWait {
    /// The verified commit.
    pub commit: CommitId,
    /// One more than the number of rounds in which the checks failed.
    pub round: u32,
    /// When the wait ends at the latest.
    pub until: jiff::Timestamp,
}

/// A wait for a source host that is not available or limits requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWait {
    /// When the next attempt starts.
    pub until: jiff::Timestamp,
    /// The last error.
    pub why: String,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FailReason {
    /// A budget is used up.
    Budget {
        /// The budget.
        budget: Budget,
    },
    /// The model gave up.
    Model {
        /// The model's reason.
        reason: String,
    },
    /// It is circling, and no mitigation is left.
    Gutter {
        /// The number of consecutive circling iterations.
        consecutive: u32,
        /// The limit of the task.
        limit: u32,
    },
    /// The run could not be set up.
    Setup {
        /// The error.
        why: String,
    },
}

impl PauseReason {
    /// Returns the question of the model, if it asks one.
    pub fn question(&self) -> Option<&str> {
        match self {
            Self::Model { question } => Some(question),
            Self::Person
            | Self::Interrupted
            | Self::Gutter { .. }
            | Self::TestChanges { .. }
            | Self::CrashLoop { .. }
            | Self::Broken { .. } => None,
        }
    }

    /// Decides whether an answer of the user can continue the run. The error is the reason why not.
    pub fn answerable(&self) -> Result<(), &'static str> {
        match self {
            Self::Model { .. } | Self::Gutter { .. } => Ok(()),
            // Resuming approves the changes, so a text must not do it by accident.
            Self::TestChanges { .. } => {
                Err("it asks for the approval of changed tests, which `ralph resume` gives")
            }
            Self::Person | Self::Interrupted | Self::CrashLoop { .. } | Self::Broken { .. } => {
                Err("it does not ask a question")
            }
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("paused by the user"),
            Self::Interrupted => f.write_str("the program was interrupted"),
            Self::Model { question } => write!(f, "the model asks: {question}"),
            Self::Gutter {
                consecutive,
                evidence,
            } => write!(
                f,
                "circling for {consecutive} consecutive iterations: {evidence}"
            ),
            Self::TestChanges { changes, .. } => write!(
                f,
                "existing tests were changed: {} — resuming the run approves exactly these changes",
                changes.join("; ")
            ),
            Self::CrashLoop { what, fix } | Self::Broken { what, fix } => {
                write!(f, "{what} — {fix}")
            }
        }
    }
}

impl fmt::Display for QuotaWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "{}; the model is called again at {until}", self.why)
    }
}

impl fmt::Display for ProviderWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "{}; next attempt at {until}", self.why)
    }
}

impl fmt::Display for CiWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.strftime("%Y-%m-%d %H:%M:%S UTC");
        let commit = self.commit.short();
        write!(f, "checks of commit {commit} at the source host")?;
        if self.round > 1 {
            write!(f, ", round {}", self.round)?;
        }
        write!(f, "; at most until {until}")
    }
}

impl fmt::Display for HostWait {
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
                "circling for {consecutive} consecutive iterations, but `max_consecutive_gutter` is {limit}"
            ),
            Self::Setup { why } => write!(f, "the run could not be set up: {why}"),
        }
    }
}

impl RunStatus {
    /// Returns the name that scripts and lists show.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Paused(_) => "paused",
            Self::WaitingQuota(_) => "waiting_quota",
            Self::WaitingProvider(_) => "waiting_provider",
            Self::WaitingCi(_) => "waiting_ci",
            Self::WaitingHost(_) => "waiting_host",
            Self::Verifying => "verifying",
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Stopped => "stopped",
            Self::SandboxLost => "sandbox_lost",
        }
    }

    /// Returns the reason in one line, if the status has one.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Paused(reason) => Some(reason.to_string()),
            Self::Failed(reason) => Some(reason.to_string()),
            Self::WaitingQuota(wait) => Some(wait.to_string()),
            Self::WaitingProvider(wait) => Some(wait.to_string()),
            Self::WaitingCi(wait) => Some(wait.to_string()),
            Self::WaitingHost(wait) => Some(wait.to_string()),
            Self::SandboxLost => Some("the sandbox is gone; committed work is kept".into()),
            Self::Created
            | Self::Preparing
            | Self::Running
            | Self::Verifying
            | Self::Succeeded
            | Self::Stopped => None,
        }
    }

    /// Returns whether the run has ended.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Succeeded | Self::Failed(_) | Self::Stopped => true,
            Self::Created
            | Self::Preparing
            | Self::Running
            | Self::Paused(_)
            | Self::WaitingQuota(_)
            | Self::WaitingProvider(_)
            | Self::WaitingCi(_)
            | Self::WaitingHost(_)
            | Self::Verifying
            | Self::SandboxLost => false,
        }
    }

    /// Returns whether a process works on the run or waits for it, unless that process crashed.
    pub fn needs_process(&self) -> bool {
        match self {
            Self::WaitingQuota(_)
            | Self::WaitingProvider(_)
            | Self::WaitingCi(_)
            | Self::WaitingHost(_) => true,
            Self::Created
            | Self::Preparing
            | Self::Running
            | Self::Paused(_)
            | Self::Verifying
            | Self::Succeeded
            | Self::Failed(_)
            | Self::Stopped
            | Self::SandboxLost => self.is_active(),
        }
    }

    /// Returns whether a process works on the run, unless that process crashed.
    pub fn is_active(&self) -> bool {
        match self {
            Self::Created | Self::Preparing | Self::Running | Self::Verifying => true,
            Self::Paused(_)
            | Self::WaitingQuota(_)
            | Self::WaitingProvider(_)
            | Self::WaitingCi(_)
            | Self::WaitingHost(_)
            | Self::Succeeded
            | Self::Failed(_)
            | Self::Stopped
            | Self::SandboxLost => false,
        }
    }
}

/// Decides whether a status and a mode allow a command. The error is the reason for the rejection.
#[expect(
    clippy::too_many_lines,
    reason = "one table of status, mode and command"
)]
pub fn legal(status: &RunStatus, mode: RunMode, command: &Command) -> Result<(), &'static str> {
    use Command as C;
    use RunMode as M;
    use RunStatus as S;
    match (status, mode, command) {
        (S::Failed(FailReason::Budget { .. }), _, C::Limits(_)) => Ok(()),
        (S::Succeeded, _, _) => Err("it has succeeded"),
        (S::Failed(_), _, _) => Err("it has failed"),
        (S::Stopped, _, _) => Err("it was stopped"),

        (S::Paused(reason), _, C::Answer { .. }) => reason.answerable(),
        (_, _, C::Answer { .. }) => Err("it does not ask a question"),
        (S::Paused(reason), _, C::Note(_) | C::Message { .. }) if reason.answerable().is_ok() => {
            Ok(())
        }

        (_, M::Autonomous, C::Note(_)) => {
            Err("its mode is `autonomous`; notes need the mode `guided`, see `ralph mode`")
        }
        (_, M::Autonomous, C::Message { .. }) => {
            Err("its mode is `autonomous`; messages need the mode `guided`, see `ralph mode`")
        }
        (_, M::Autonomous, C::Edit(_)) => {
            Err("its mode is `autonomous`; edits of files need the mode `guided`, see `ralph mode`")
        }
        (_, M::Autonomous | M::Guided, C::Debug { .. }) => {
            Err("debugging needs the mode `debug`, see `ralph mode`")
        }

        (S::Created | S::Preparing | S::Running | S::Verifying, _, C::Pause | C::Stop)
        | (S::Running | S::WaitingCi(_), _, C::Rotate)
        | (
            S::WaitingQuota(_) | S::WaitingProvider(_) | S::WaitingCi(_) | S::WaitingHost(_),
            _,
            C::Pause | C::Resume | C::Stop,
        )
        | (S::Paused(_) | S::SandboxLost, _, C::Resume | C::Stop)
        | (
            _,
            _,
            C::Guardrail(_)
            | C::Profile { .. }
            | C::Task { .. }
            | C::Mode { .. }
            | C::AllowHost { .. }
            | C::Limits(_),
        )
        | (_, M::Guided | M::Debug, C::Note(_) | C::Message { .. })
        | (
            S::Running
            | S::Verifying
            | S::WaitingQuota(_)
            | S::WaitingProvider(_)
            | S::WaitingCi(_)
            | S::WaitingHost(_)
            | S::Paused(_)
            | S::SandboxLost,
            _,
            C::Diagnose | C::Apply,
        )
        | (
            S::Running
            | S::Verifying
            | S::WaitingQuota(_)
            | S::WaitingProvider(_)
            | S::WaitingCi(_)
            | S::WaitingHost(_)
            | S::Paused(_),
            M::Debug,
            C::Debug { .. },
        )
        | (
            S::Running
            | S::Verifying
            | S::WaitingQuota(_)
            | S::WaitingProvider(_)
            | S::WaitingCi(_)
            | S::WaitingHost(_)
            | S::Paused(_),
            M::Guided | M::Debug,
            C::Edit(_),
        ) => Ok(()),

        (S::Created | S::Preparing | S::Running | S::Verifying, _, C::Resume) => {
            Err("it is not paused")
        }
        (
            S::Created | S::Preparing,
            _,
            C::Rotate | C::Diagnose | C::Apply | C::Debug { .. } | C::Edit(_),
        ) => Err("it has not started an iteration yet"),
        (S::WaitingQuota(_), _, C::Rotate) => Err("it is waiting for a usage limit to reset"),
        (S::WaitingProvider(_), _, C::Rotate) => Err("it is waiting for the model's provider"),
        (S::WaitingHost(_), _, C::Rotate) => Err("it is waiting for the source host"),
        (S::Verifying, _, C::Rotate) => Err("its commit is being verified"),
        (S::Paused(_), _, C::Pause) => Err("it is already paused"),
        (S::Paused(_), _, C::Rotate) => Err("it is paused; resume it first"),
        (S::SandboxLost, _, C::Pause | C::Rotate | C::Debug { .. } | C::Edit(_)) => {
            Err("its sandbox is gone")
        }
    }
}

#[cfg(test)]
mod tests;
