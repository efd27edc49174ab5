//! The life of a run: its statuses, the commands people send, and which is allowed when.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;

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

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { budget } => write!(f, "the budget `{}` is used up", budget.key()),
            Self::Model { reason } => write!(f, "the model gave up: {reason}"),
            Self::Setup { why } => write!(f, "it could not be set up: {why}"),
        }
    }
}

impl RunStatus {
    /// Returns the one word that scripts and lists show.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Paused(_) => "paused",
            Self::WaitingQuota(_) => "waiting_quota",
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
            | Self::Verifying
            | Self::SandboxLost => false,
        }
    }

    /// Tells whether a process has it, if one is alive: one that works on it, or one that waits to go on.
    pub fn needs_process(&self) -> bool {
        self.is_active() || matches!(self, Self::WaitingQuota(_))
    }

    /// Tells whether a process works on it, if one is alive.
    pub fn is_active(&self) -> bool {
        match self {
            Self::Created | Self::Preparing | Self::Running | Self::Verifying => true,
            Self::Paused(_)
            | Self::WaitingQuota(_)
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
        }
    }
}

/// Decides whether a command makes sense now. The refusal says why not.
pub fn legal(status: &RunStatus, command: &Command) -> Result<(), &'static str> {
    use Command as C;
    use RunStatus as S;
    match (status, command) {
        (S::Created | S::Preparing | S::Running | S::Verifying, C::Pause | C::Stop)
        | (S::Running, C::Rotate)
        | (S::WaitingQuota(_), C::Pause | C::Resume | C::Stop)
        | (S::Paused(_) | S::SandboxLost, C::Resume | C::Stop)
        | (
            S::Created
            | S::Preparing
            | S::Running
            | S::Verifying
            | S::WaitingQuota(_)
            | S::Paused(_)
            | S::SandboxLost,
            C::Profile { .. },
        ) => Ok(()),
        (S::Created | S::Preparing | S::Running | S::Verifying, C::Resume) => {
            Err("it is not paused")
        }
        (S::Created | S::Preparing, C::Rotate) => Err("it has not started an iteration yet"),
        (S::WaitingQuota(_), C::Rotate) => Err("it waits for the end of a usage limit"),
        (S::Verifying, C::Rotate) => Err("its commit is being verified"),
        (S::Paused(_), C::Pause) => Err("it is paused already"),
        (S::Paused(_), C::Rotate) => Err("it is paused; it has to be resumed first"),
        (S::SandboxLost, C::Pause | C::Rotate) => Err("its sandbox is gone"),
        (S::Succeeded, _) => Err("it has succeeded"),
        (S::Failed(_), _) => Err("it has failed"),
        (S::Stopped, _) => Err("it was stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<RunStatus> {
        vec![
            RunStatus::Created,
            RunStatus::Preparing,
            RunStatus::Running,
            RunStatus::Paused(PauseReason::Person),
            RunStatus::WaitingQuota(QuotaWait {
                until: jiff::Timestamp::UNIX_EPOCH,
                why: "the weekly limit is reached".into(),
            }),
            RunStatus::Verifying,
            RunStatus::Succeeded,
            RunStatus::Failed(FailReason::Budget {
                budget: Budget::Cost,
            }),
            RunStatus::Stopped,
            RunStatus::SandboxLost,
        ]
    }

    #[test]
    fn the_table_of_commands() {
        let mut table = String::new();
        for status in all() {
            use std::fmt::Write as _;
            let answers: Vec<&str> = [
                Command::Pause,
                Command::Resume,
                Command::Rotate,
                Command::Stop,
                Command::Profile { name: "p".into() },
            ]
            .iter()
            .filter(|command| legal(&status, command).is_ok())
            .map(Command::verb)
            .collect();
            writeln!(table, "{}: {}", status.word(), answers.join(" ")).unwrap();
        }
        snapbox::assert_data_eq!(
            table,
            snapbox::str![[r"
created: pause stop profile
preparing: pause stop profile
running: pause rotate stop profile
paused: resume stop profile
waiting_quota: pause resume stop profile
verifying: pause stop profile
succeeded: 
failed: 
stopped: 
sandbox_lost: resume stop profile

"]]
        );
    }

    #[test]
    fn every_status_reads_back() {
        for status in all() {
            let text = serde_json::to_string(&status).unwrap();
            assert_eq!(serde_json::from_str::<RunStatus>(&text).unwrap(), status);
        }
    }
}
