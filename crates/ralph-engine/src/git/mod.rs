//! Git inside the sandbox, and git for the host's own bare repository.
//!
//! The host never runs git in a directory that an agent can write: commits are transferred as
//! bundles, into the sandbox and out of it, and the host imports them into a repository whose
//! configuration only ralph writes.

mod applied_changes;
mod askpass;
mod bounded;
mod call_log;
mod change;
mod commit;
mod commit_files;
mod content;
mod entries;
mod error_line;
mod export;
mod file_diff;
mod history;
mod host;
mod incoming;
mod integrity;
pub(crate) mod locks;
mod mirror;
mod nested;
mod origin;
mod program;
mod project_config;
mod remote;
mod sandbox;
mod saved;
mod state;
mod survey;
mod unlocked_diff;
mod user_repository;
mod version;
mod work_tree;

pub use askpass::{SOCKET_VARIABLE, ask};
pub use change::IterationChange;
pub use commit::{CommitExclusions, CommitOutcome, OwnFiles};
pub use commit_files::CommitEntry;
pub use history::{Commit, History};
pub use host::{BaseOrigin, HostRepo, SnapshotFiles};
pub use incoming::IncomingCommits;
pub use mirror::{MirrorRemoval, RepositoryMirror};
pub use nested::NestedRepository;
pub use origin::RemoteOrigin;
pub use program::HostGit;
pub use project_config::ProjectConfigError;
pub use remote::{RemoteBranches, RemoteTransport};
pub use sandbox::{BundleSource, SandboxGit};
pub(crate) use state::{RepoRefs, WorkSnapshot};
pub use survey::Survey;
pub use user_repository::{MergeResult, UserRepository};
pub use version::GitVersion;
pub use work_tree::WorkTree;

use ralph_core::ports::ScmError;

use crate::durable;

/// The most bytes that one commit may add. Larger files cannot be committed, and git never reads
/// them.
pub(crate) const MAX_COMMIT_BYTES: u64 = 20 << 20;

/// Why a git operation failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git cannot be started.
    #[error("cannot run git: {0}")]
    Missing(std::io::Error),
    /// A file operation failed.
    #[error(transparent)]
    Store(#[from] durable::StoreError),
    /// A git command failed on the host.
    #[error("git {command} failed: {message}")]
    Failed {
        command: String,
        /// The error message of git, or its exit status.
        message: String,
    },
    /// A git command on the host exceeded its timeout and was killed.
    #[error("git {command} timed out after {} minutes", .after.as_secs() / 60)]
    TimedOut {
        command: String,
        /// The timeout.
        after: std::time::Duration,
    },
    /// A commit contains an object that is too large.
    #[error("{what} has {} MiB; a file in a commit may have at most {} MiB", .size.div_ceil(1 << 20), .limit >> 20)]
    TooLarge {
        /// The file, or the object if no file is known.
        what: String,
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
    /// The disk is full.
    #[error("git {command} failed: there is no space left on the disk")]
    Full { command: String },
    /// A git command failed in the sandbox.
    #[error("git {command} failed in the sandbox: {message}")]
    InSandbox {
        command: String,
        /// The error message of git.
        message: String,
    },
    /// The branch at the source host has commits of another origin.
    #[error("{}", describe_move(branch, foreign.as_deref()))]
    Moved {
        branch: String,
        /// The author of these commits and their number, if they can be read.
        foreign: Option<String>,
    },
    /// The source host rejected the credential of git, or wants one.
    #[error("the source host rejected the credential: git {command} failed: {message}")]
    Unauthorized {
        command: String,
        /// The error message of git.
        message: String,
    },
    /// The credential of git is not available.
    #[error("cannot get the credential of git: {0}")]
    Login(#[source] ScmError),
    /// A commit of the run is lost.
    #[error(
        "commit {commit} of the run is lost: it is not complete in the run's repository, in its sandbox or in `{remote}`"
    )]
    Lost {
        commit: String,
        /// The repository that the run pushes to.
        remote: String,
    },
    /// The output of git cannot be parsed.
    #[error("git {command} printed unexpected output: {output}")]
    Unexpected { command: String, output: String },
}

fn describe_move(branch: &str, foreign: Option<&str>) -> String {
    match foreign {
        Some(foreign) => format!("branch `{branch}` moved by {foreign} that ralph did not push"),
        None => format!("branch `{branch}` has commits that ralph did not push"),
    }
}

impl GitError {
    /// Returns the hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing(_) => "install git and make sure it is on PATH",
            Self::Store(error) => error.hint(),
            Self::Full { .. } => durable::DISK_FULL_HINT,
            Self::Lost { .. } => {
                "restore one of the three from a backup, then `ralph resume`, or start over with `ralph run --new`"
            }
            Self::Moved { .. } => {
                "ralph never overwrites them; rename or remove that branch at the source host, then `ralph resume` pushes the run's own commits"
            }
            Self::Unauthorized { .. } | Self::Login(_) => {
                "renew the credential; `ralph scm check` tests it; then `ralph resume`"
            }
            Self::Failed { .. }
            | Self::TimedOut { .. }
            | Self::TooLarge { .. }
            | Self::InSandbox { .. }
            | Self::Unexpected { .. } => "fix the problem that git reports, then `ralph resume`",
        }
    }
}
