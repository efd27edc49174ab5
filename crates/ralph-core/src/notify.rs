//! Decides about which ends of a process's work the user is notified.

use serde::{Deserialize, Serialize};

use crate::run::{PauseReason, RunStatus};

/// The kind of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyKind {
    /// The run succeeded.
    Finished,
    /// The run failed, or its process cannot continue it.
    Failed,
    /// The run waits for the user.
    NeedsYou,
}

impl NotifyKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Finished, Self::Failed, Self::NeedsYou];

    /// Returns the name in `ralph.toml` and in notifications.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::NeedsYou => "needs-you",
        }
    }

    /// Returns the kind for a status with which a process ended its work. A run that the user paused,
    /// stopped or interrupted needs no notification.
    pub fn for_status(status: &RunStatus) -> Option<Self> {
        match status {
            RunStatus::Succeeded => Some(Self::Finished),
            RunStatus::Failed(_) => Some(Self::Failed),
            RunStatus::Paused(
                PauseReason::Model { .. }
                | PauseReason::Gutter { .. }
                | PauseReason::TestChanges { .. }
                | PauseReason::CrashLoop { .. }
                | PauseReason::Broken { .. },
            )
            | RunStatus::SandboxLost => Some(Self::NeedsYou),
            RunStatus::Paused(PauseReason::Person | PauseReason::Interrupted)
            | RunStatus::Stopped
            | RunStatus::Created
            | RunStatus::Preparing
            | RunStatus::Running
            | RunStatus::WaitingQuota(_)
            | RunStatus::WaitingProvider(_)
            | RunStatus::WaitingCi(_)
            | RunStatus::WaitingHost(_)
            | RunStatus::Verifying => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::FailReason;

    #[test]
    fn only_unexpected_ends_are_notified() {
        let broken = PauseReason::Model {
            question: "x".into(),
        };
        let failed = FailReason::Model { reason: "x".into() };
        for (status, kind) in [
            (RunStatus::Succeeded, Some(NotifyKind::Finished)),
            (RunStatus::Failed(failed), Some(NotifyKind::Failed)),
            (RunStatus::Paused(broken), Some(NotifyKind::NeedsYou)),
            (RunStatus::SandboxLost, Some(NotifyKind::NeedsYou)),
            (RunStatus::Paused(PauseReason::Person), None),
            (RunStatus::Paused(PauseReason::Interrupted), None),
            (RunStatus::Stopped, None),
        ] {
            assert_eq!(NotifyKind::for_status(&status), kind, "{status:?}");
        }
    }
}
