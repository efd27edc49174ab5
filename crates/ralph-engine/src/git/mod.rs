//! Git, written once over the sandbox port, and once for the host's own bare repository.
//!
//! The host never runs git in a directory that an agent can write: commits travel as bundles, into
//! the sandbox and out of it, and the host takes them into a repository whose configuration only
//! ralph writes.

mod commit;
mod host;
pub(crate) mod locks;
mod sandbox;
mod status;

pub use commit::{CommitOutcome, OwnFiles};
pub use host::{ChangedFile, HostGit, HostRepo};
pub use sandbox::{Origin, SandboxGit};
pub use status::WorkTree;

/// Why git could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git itself cannot be started.
    #[error("cannot run git: {0}")]
    Missing(std::io::Error),
    /// A git command failed on the host.
    #[error("git {command} failed: {message}")]
    Failed {
        /// Which command.
        command: String,
        /// Its own words.
        message: String,
    },
    /// A git command failed in the sandbox.
    #[error("git {command} failed in the sandbox: {message}")]
    InSandbox {
        /// Which command.
        command: String,
        /// Its own words.
        message: String,
    },
    /// The branch at the source host has commits that are not ours.
    #[error("branch `{branch}` was moved by somebody else")]
    Moved {
        /// The branch.
        branch: String,
    },
    /// Git answered something that cannot be understood.
    #[error("git {command} answered something unexpected: {answer}")]
    Unexpected {
        /// Which command.
        command: String,
        /// What it answered.
        answer: String,
    },
}

impl GitError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing(_) => "install git and make sure it is on PATH",
            Self::Moved { .. } => "look at the branch's new commits; ralph never overwrites them",
            Self::Failed { .. } | Self::InSandbox { .. } | Self::Unexpected { .. } => {
                "look at git's message, then `ralph resume`"
            }
        }
    }
}
