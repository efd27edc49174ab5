//! Events of the run's commits on the host and at the source host.

use serde::{Deserialize, Serialize};

use crate::id::CommitId;
use crate::ports::{PullRequest, PullState};
use crate::publish::ci::{CiCounts, CiDecision, CiOutcome};
use crate::publish::overlap::PullOverlap;

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
    /// Intent: the pull request of a branch is about to be opened at a host on the network.
    PullRequestStarted { branch: String, head: CommitId },
    /// The pull request exists and is up to date.
    PullRequestUpdated { pull: PullRequest, opened: bool },
    /// The run's files were pushed to the side ref, as a backup.
    StateSaved { reference: String, commit: CommitId },
    /// The states of the checks at the source host changed.
    CiProgress { commit: CommitId, counts: CiCounts },
    /// The wait for the checks of a commit has a result.
    CiFinished {
        commit: CommitId,
        /// One more than the number of failed rounds before this one.
        round: u32,
        outcome: CiOutcome,
        /// The names of the failed checks.
        failed: Vec<String>,
        /// The number of checks in each state.
        counts: CiCounts,
        decision: CiDecision,
    },
    /// Another open pull request changes files of the run, or more of them than before.
    OverlapFound {
        overlap: PullOverlap,
        /// Whether the run pauses for it.
        pauses: bool,
    },
    /// A pull request no longer overlaps with the run.
    OverlapEnded { number: u64 },
    /// Reviews that request changes were given to the model.
    ReviewsReceived {
        /// The highest id of a review so far.
        last: u64,
        reviewers: Vec<String>,
    },
    /// The base branch at the source host is not at the commit that the run started from.
    BaseMoved { branch: String, head: CommitId },
    /// The pull request of the base branch was merged or closed.
    BasePullClosed {
        branch: String,
        number: u64,
        url: String,
        state: PullState,
    },
    /// The user discarded the run: its branch, if there was one, is removed.
    Discarded { branch: String },
}

impl DeliveryEvent {
    pub(super) const TYPES: &[&str] = &[
        "commits_imported",
        "import_refused",
        "push_started",
        "pushed",
        "pull_request_started",
        "pull_request_updated",
        "state_saved",
        "ci_progress",
        "ci_finished",
        "overlap_found",
        "overlap_ended",
        "reviews_received",
        "base_moved",
        "base_pull_closed",
        "discarded",
    ];
}
