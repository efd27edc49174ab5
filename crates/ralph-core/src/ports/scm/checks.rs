//! Checks and statuses of a commit, and reviews of a pull request.

/// The result of a completed check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckConclusion {
    /// Success, neutral or skipped.
    Passed,
    /// Failed, cancelled, timed out, or an action is required.
    Failed,
}

/// A check run or a commit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    /// The id of a check run; `None` for a commit status.
    pub id: Option<u64>,
    pub name: String,
    /// The page with details.
    pub url: Option<String>,
    /// `None` while it has not completed.
    pub conclusion: Option<CheckConclusion>,
    /// The host's word for its state, such as `timed_out` or `in_progress`.
    pub state: String,
}

/// The checks of a commit, sorted by name. A commit without checks has an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub checks: Vec<HostCheck>,
}

impl CheckReport {
    /// Returns the failed checks.
    pub fn failed(&self) -> impl Iterator<Item = &HostCheck> {
        let is_failed = |check: &&HostCheck| check.conclusion == Some(CheckConclusion::Failed);
        self.checks.iter().filter(is_failed)
    }

    /// Returns the checks that have not completed.
    pub fn pending(&self) -> impl Iterator<Item = &HostCheck> {
        self.checks
            .iter()
            .filter(|check| check.conclusion.is_none())
    }
}

/// The state of a commit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitState {
    Pending,
    Success,
    Failure,
    Error,
}

/// A status that ralph sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStatus {
    pub state: CommitState,
    /// The name of the status, such as `ralph/clean-room`.
    pub context: String,
    /// At most 140 characters.
    pub description: String,
    pub url: Option<String>,
}

/// The verdict of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    Approved,
    ChangesRequested,
    Commented,
    Dismissed,
}

/// A review with its comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullReview {
    pub id: u64,
    pub author: String,
    /// Whether the author is the owner of the repository, a member of its organization or a
    /// collaborator.
    pub is_member: bool,
    pub verdict: ReviewVerdict,
    /// The commit that was reviewed.
    pub commit: Option<String>,
    /// The text of the review, then one line `path:line: text` per comment; at most 16 KiB.
    pub text: String,
}
