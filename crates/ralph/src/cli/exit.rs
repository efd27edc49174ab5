//! The exit codes of `ralph`. Scripts rely on them, so a code never changes its meaning.

use ralph_app::ErrorKind;
use ralph_app::issues::IssueEnd;
use ralph_core::run::{PauseReason, RunStatus};

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The command succeeded.
    Success = 0,
    /// The command failed, or a check of `lint`, `audit`, `preflight` or `selftest` did.
    Runtime = 1,
    /// The request is invalid, or a proposal of the repository is not approved.
    Usage = 2,
    /// The run ended without success: a budget is used up, the model gave up, or the user stopped
    /// it.
    Failed = 10,
    /// The run waits for the user, or this process lost it.
    Paused = 11,
    /// The run was not started: the linter rejected its task file, or its issue may not be worked on.
    LintRefused = 12,
    /// A signal ended the program.
    Interrupted = 130,
}

impl ExitCode {
    /// Returns the exit code for the status of a run whose process has ended.
    pub fn for_status(status: &RunStatus) -> Self {
        match status {
            RunStatus::Succeeded => Self::Success,
            RunStatus::Failed(_) | RunStatus::Stopped => Self::Failed,
            RunStatus::Paused(PauseReason::Interrupted) => Self::Interrupted,
            RunStatus::Paused(
                PauseReason::Person
                | PauseReason::Model { .. }
                | PauseReason::Gutter { .. }
                | PauseReason::TestChanges { .. }
                | PauseReason::CrashLoop { .. }
                | PauseReason::Broken { .. },
            )
            | RunStatus::SandboxLost => Self::Paused,
            RunStatus::Created
            | RunStatus::Preparing
            | RunStatus::Running
            | RunStatus::WaitingQuota(_)
            | RunStatus::WaitingProvider(_)
            | RunStatus::WaitingCi(_)
            | RunStatus::WaitingHost(_)
            | RunStatus::Verifying => Self::Runtime,
        }
    }

    /// Returns the code for the result of the work on an issue.
    pub fn for_issue(end: &IssueEnd) -> Self {
        match end {
            IssueEnd::Done { .. } | IssueEnd::AlreadyDone => Self::Success,
            IssueEnd::Failed { .. } => Self::Failed,
            IssueEnd::NeedsAttention { .. } | IssueEnd::Blocked(_) => Self::Paused,
            IssueEnd::Interrupted => Self::Interrupted,
            IssueEnd::Refused(_) => Self::LintRefused,
        }
    }

    /// Returns the code of an error.
    pub fn for_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Runtime | ErrorKind::Refused => Self::Runtime,
            ErrorKind::TaskRejected => Self::LintRefused,
            ErrorKind::RunLost => Self::Paused,
            ErrorKind::Interrupted => Self::Interrupted,
        }
    }

    /// Returns the exit code with a number, if there is one.
    pub fn from_code(code: i32) -> Option<Self> {
        let all = [
            Self::Success,
            Self::Runtime,
            Self::Usage,
            Self::Failed,
            Self::Paused,
            Self::LintRefused,
            Self::Interrupted,
        ];
        all.into_iter()
            .find(|known| i32::from(known.code()) == code)
    }

    /// Returns the exit code as a number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}

#[cfg(test)]
mod tests {
    use ralph_core::run::FailReason;

    use super::*;

    #[test]
    fn every_status_has_its_code() {
        let paused = |reason| RunStatus::Paused(reason);
        for (status, code) in [
            (RunStatus::Succeeded, 0),
            (RunStatus::Running, 1),
            (RunStatus::Stopped, 10),
            (
                RunStatus::Failed(FailReason::Model { reason: "x".into() }),
                10,
            ),
            (paused(PauseReason::Person), 11),
            (RunStatus::SandboxLost, 11),
            (paused(PauseReason::Interrupted), 130),
        ] {
            assert_eq!(ExitCode::for_status(&status).code(), code, "{status:?}");
        }
    }
}
