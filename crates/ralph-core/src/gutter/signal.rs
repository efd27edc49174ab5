//! The signals that make up a score, with their facts. [`evidence`](super::evidence) formats them.

use serde::{Deserialize, Serialize};

use crate::id::Digest;

/// A signal for or against circling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum GutterSignal {
    /// The same command failed repeatedly in the same way.
    RepeatedFailure {
        command: String,
        /// The outcome, such as `exit 1`.
        ended: String,
        /// Identifies the failure, see [`signature`](super::signature).
        signature: Digest,
        iterations: Vec<u32>,
    },
    /// Almost no lines changed.
    Stagnation {
        iterations: Vec<u32>,
        /// Changed lines per iteration.
        lines: Vec<u64>,
        /// The threshold for changed lines.
        enough: u64,
    },
    /// Files alternate between two versions.
    FileThrash { files: Vec<ThrashedFile> },
    /// No command ran and nothing changed.
    Idle { iterations: Vec<u32> },
    /// The same problem persists although its output changes.
    SameProblem {
        problem: String,
        iterations: Vec<u32>,
    },
    /// Iterations repeatedly replace the code of the previous iteration.
    Rewriting {
        iterations: Vec<u32>,
        /// Sampled lines of the previous iteration that are gone, per iteration.
        gone: Vec<u32>,
        /// Sizes of those samples.
        of: Vec<u32>,
    },
    /// The uncommitted diff grows and never shrinks while failures continue.
    GrowingDiff {
        iterations: Vec<u32>,
        /// Lines of the diff after each iteration.
        lines: Vec<u64>,
    },
    /// Files cycle through the same states.
    Cycle {
        /// Number of states in a cycle.
        period: u32,
        /// Empty if the whole repository cycles.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        iterations: Vec<u32>,
    },
    /// The same files are reformatted repeatedly.
    Reformatting {
        /// One of the reformatted files.
        file: String,
        iterations: Vec<u32>,
    },
    /// Commands ran but nothing changed.
    Reading {
        iterations: Vec<u32>,
        /// Number of commands per iteration.
        commands: Vec<u32>,
    },
    /// No box was ticked, no new commit was accepted, and neither tests nor problems improved.
    NoProgress { iterations: Vec<u32> },
    /// A failure has the same signature each time, but its problems change or become fewer.
    MovedOn {
        /// One of the problems of the last iteration.
        problem: String,
        iterations: Vec<u32>,
    },
    /// One of the two previous iterations ticked a box or improved the tests, and no more tests
    /// fail since.
    RecentProgress { iteration: u32 },
    /// Fewer tests fail than before, or they are green for the first time.
    TestsCloser {
        /// The lowest earlier number of failures; `None` if unknown.
        failed_before: Option<u64>,
        /// `None` if unknown.
        failed_now: Option<u64>,
        /// The iteration with the lowest earlier number of failures; if unknown, the last earlier
        /// iteration with a test result.
        since: u32,
    },
}

/// A file that alternates between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrashedFile {
    pub path: String,
    pub iterations: Vec<u32>,
}

impl GutterSignal {
    /// Returns the contribution to the score, in tenths.
    pub fn tenths(&self) -> i32 {
        match self {
            Self::RepeatedFailure { .. } | Self::Reformatting { .. } => 5,
            Self::Stagnation { .. } | Self::Rewriting { .. } | Self::GrowingDiff { .. } => 3,
            Self::FileThrash { .. } => 2,
            Self::Idle { .. } | Self::Reading { .. } | Self::SameProblem { .. } => 4,
            Self::Cycle { .. } | Self::NoProgress { .. } => 7,
            // Progress cancels a repeated failure.
            Self::TestsCloser { .. } | Self::MovedOn { .. } | Self::RecentProgress { .. } => -5,
        }
    }

    /// Returns the serialized name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RepeatedFailure { .. } => "repeated_failure",
            Self::Stagnation { .. } => "stagnation",
            Self::FileThrash { .. } => "file_thrash",
            Self::Idle { .. } => "idle",
            Self::SameProblem { .. } => "same_problem",
            Self::Rewriting { .. } => "rewriting",
            Self::GrowingDiff { .. } => "growing_diff",
            Self::Cycle { .. } => "cycle",
            Self::Reformatting { .. } => "reformatting",
            Self::Reading { .. } => "reading",
            Self::NoProgress { .. } => "no_progress",
            Self::MovedOn { .. } => "moved_on",
            Self::RecentProgress { .. } => "recent_progress",
            Self::TestsCloser { .. } => "tests_closer",
        }
    }
}
