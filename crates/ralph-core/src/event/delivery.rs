//! Events of the run's commits on the host and at the source host.

use serde::{Deserialize, Serialize};

use crate::id::CommitId;
use crate::ports::PullRequest;

/// Commits are imported, pushed and put into a pull request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeliveryEvent {
    /// The sandbox's commits are in the host's repository.
    CommitsImported { head: CommitId, commits: u64 },
    /// Commits of the sandbox were rejected, or were lost before they could be imported.
    ImportRefused { why: String },
    /// Intent: a commit is about to be pushed.
    PushStarted { branch: String, head: CommitId },
    /// The source host's branch points to this commit.
    Pushed { branch: String, head: CommitId },
    /// The pull request exists and is up to date.
    PullRequestUpdated { pull: PullRequest, opened: bool },
    /// The run's files were pushed to the side ref, as a backup.
    StateSaved { reference: String, commit: CommitId },
    /// The user discarded the run: its branch, if there was one, is removed.
    Discarded { branch: String },
}

impl DeliveryEvent {
    pub(super) const TYPES: &[&str] = &[
        "commits_imported",
        "import_refused",
        "push_started",
        "pushed",
        "pull_request_updated",
        "state_saved",
        "discarded",
    ];
}
