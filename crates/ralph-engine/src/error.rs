//! External failures that stop a run. Everything else is a recorded result.

use std::time::Duration;

use ralph_core::ports::{HostError, ModelError, ProviderProblem, SandboxError, ScmError};
use ralph_core::run::PauseReason;
use ralph_core::state::CrashedCommand;

use crate::durable::{self, StoreError};
use crate::git::GitError;
use crate::journal::JournalError;

/// Why a run cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program crashed too often during the same command.
    #[error("ralph crashed {} times in a row while `{}` was running", .0.crashes, .0.command)]
    CrashLoop(CrashedCommand),
    /// The server crashed too often while it opened the run.
    #[error("the server crashed {crashes} times in a row while it opened the run")]
    OpeningCrashes { crashes: u32 },
    /// A file operation in the state directory failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Git failed, on the host or in the sandbox.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The source host failed.
    #[error(transparent)]
    Scm(#[from] ScmError),
    /// The source host was not available for longer than a run waits, or limits requests for longer.
    #[error("{error}; {}", waited_for(*.waited))]
    HostOutage {
        error: Box<HostError>,
        waited: Duration,
    },
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model's provider was not available for longer than a run waits.
    #[error("{error}; {}", waited_for(*.waited))]
    Outage {
        error: Box<ModelError>,
        waited: Duration,
    },
    /// The text of a contract does not match its digest in the journal.
    #[error("the pinned contract `{0}` does not match its digest in the journal")]
    Contract(String),
    /// The sandbox must not be used for further work.
    #[error("{}", .0.what)]
    UnusableSandbox(ProviderProblem),
    /// The thread of the run could not start, or panicked.
    #[error("the thread of the run failed: {0}")]
    Thread(String),
    /// The user stopped the run.
    #[error("stopped by the user")]
    Stopped,
    /// The user paused the run before it was opened.
    #[error("paused by the user before it was opened")]
    Paused,
    /// The program was interrupted.
    #[error("ralph was interrupted")]
    Interrupted,
}

impl RunError {
    /// Returns the hint for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Store(error) | Self::Journal(JournalError::Store(error)) => {
                error.hint().to_owned()
            }
            Self::Journal(JournalError::Held { .. }) => "wait for it, or send it a command".into(),
            Self::Journal(JournalError::Lost { .. }) => {
                "check its status with `ralph show`".into()
            }
            Self::Journal(JournalError::Newer { .. } | JournalError::Unknown { .. }) => {
                "upgrade ralph".into()
            }
            Self::Journal(JournalError::Empty { .. } | JournalError::Damaged { .. }) => {
                "`ralph audit` shows what is damaged; start the task again with `ralph run --new`"
                    .into()
            }
            Self::Sandbox(SandboxError::Gone(_)) => {
                "`ralph resume` creates a new one from the last commit that the host has".into()
            }
            Self::Sandbox(SandboxError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                durable::DISK_FULL_HINT.into()
            }
            Self::UnusableSandbox(problem) | Self::Sandbox(SandboxError::Provider(problem)) => {
                format!("{}, then `ralph resume`", problem.fix)
            }
            Self::Git(error) => error.hint().to_owned(),
            Self::Scm(ScmError::CheckedOut { .. }) => {
                "check out another branch there, then `ralph resume`".into()
            }
            Self::Scm(ScmError::Io { .. } | ScmError::Damaged { .. }) => {
                "repair it, then `ralph resume`".into()
            }
            Self::Scm(ScmError::Host(error)) => {
                format!("{}, then `ralph resume`", error.kind.fix())
            }
            Self::HostOutage { error, .. } => {
                format!("{}, then `ralph resume`", error.kind.fix())
            }
            Self::Model(error) => model_hint(error),
            Self::Outage { .. } => OUTAGE_HINT.into(),
            Self::Contract(_) => {
                "something other than ralph changed it: restore the file, or start over with `ralph run --new`"
                    .into()
            }
            Self::CrashLoop(_) => {
                "check whether it kills its parent process or uses up the machine's memory, change the task or the sandbox, then `ralph resume`, which runs it again".into()
            }
            Self::OpeningCrashes { .. } => {
                "see the diagnostics log for the cause, then `ralph resume`, which opens it again".into()
            }
            Self::Thread(_)
            | Self::Stopped
            | Self::Paused
            | Self::Interrupted
            | Self::Sandbox(SandboxError::Interrupted { .. }) => {
                "`ralph resume` continues".into()
            }
            Self::Sandbox(_) => "check the sandbox's directory, then `ralph resume`".into(),
        }
    }

    /// Returns the reason for the pause.
    pub fn pause_reason(&self) -> PauseReason {
        match self {
            Self::Interrupted => PauseReason::Interrupted,
            Self::Paused => PauseReason::Person,
            Self::CrashLoop(_) | Self::OpeningCrashes { .. } => PauseReason::CrashLoop {
                what: self.to_string(),
                fix: self.hint(),
            },
            Self::Stopped
            | Self::Store(_)
            | Self::Journal(_)
            | Self::Sandbox(_)
            | Self::Git(_)
            | Self::Scm(_)
            | Self::HostOutage { .. }
            | Self::Model(_)
            | Self::Outage { .. }
            | Self::UnusableSandbox(_)
            | Self::Thread(_)
            | Self::Contract(_) => PauseReason::Broken {
                what: self.to_string(),
                fix: self.hint(),
            },
        }
    }
}

/// The hint for an outage that lasted longer than a run waits.
pub(crate) const OUTAGE_HINT: &str =
    "`ralph resume` tries again; `model.max_outage` in `ralph.toml` sets how long a run waits";

/// Returns the part of a message that describes how long a run has waited for a provider.
pub(crate) fn waited_for(waited: Duration) -> String {
    if waited.is_zero() {
        return "several attempts failed".into();
    }
    let whole = Duration::from_secs(waited.as_secs().max(1));
    let whole = jiff::SignedDuration::try_from(whole).unwrap_or(jiff::SignedDuration::MAX);
    format!("the run waited {whole:#} for it")
}

/// Returns the hint for a failed call.
fn model_hint(error: &ModelError) -> String {
    match error {
        ModelError::Unauthorized {
            status: 403,
            key: Some(key),
            ..
        } => format!(
            "set `{key}` to a key that may use this model, or choose another one with `ralph profile`, then `ralph resume`"
        ),
        ModelError::Unauthorized { key: Some(key), .. } => {
            format!("set `{key}` to a valid key, then `ralph resume`")
        }
        ModelError::Unauthorized { key: None, .. } => "set a valid key, then `ralph resume`".into(),
        ModelError::Transient { .. } | ModelError::CutOff { .. } => {
            "wait a few minutes, then `ralph resume`".into()
        }
        ModelError::QuotaUsedUp { .. } => {
            "raise the limit or choose another model with `ralph profile`, then `ralph resume`"
                .into()
        }
        // A run uses the profile that it started with until the user reloads it.
        ModelError::Broken { fix: Some(fix), .. } if fix.contains("`models.yaml`") => {
            format!("{fix} and choose the profile again with `ralph profile`, then `ralph resume`")
        }
        ModelError::Broken { fix: Some(fix), .. } => format!("{fix}, then `ralph resume`"),
        ModelError::Broken { fix: None, .. } => {
            "repair it, then `ralph resume`, or start over with `ralph run --new`".into()
        }
    }
}
