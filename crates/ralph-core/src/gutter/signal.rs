//! The signals that make up a score, each with its facts; [`evidence`](super::evidence) has the words.

use serde::{Deserialize, Serialize};

use crate::id::Digest;

/// Something that speaks for going in circles, or against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum GutterSignal {
    /// The same command failed in the same way again and again.
    RepeatedFailure {
        /// The command.
        command: String,
        /// How it ended.
        ended: String,
        /// What the failure looks like.
        signature: Digest,
        /// The iterations in which it did.
        iterations: Vec<u32>,
    },
    /// Hardly a line changed.
    Stagnation {
        /// The iterations in which that was so.
        iterations: Vec<u32>,
        /// The lines that changed in each of them.
        lines: Vec<u64>,
        /// How many would have been enough.
        enough: u64,
    },
    /// Files went back and forth between two contents.
    FileThrash {
        /// Which files.
        files: Vec<ThrashedFile>,
    },
    /// Nothing was run and nothing changed.
    Idle {
        /// The iterations in which that was so.
        iterations: Vec<u32>,
    },
    /// The same problem stays, though its output is another one each time.
    SameProblem {
        /// The problem.
        problem: String,
        /// The iterations in which it was there.
        iterations: Vec<u32>,
    },
    /// The code of the iteration before was replaced again and again.
    Rewriting {
        /// The iterations that did.
        iterations: Vec<u32>,
        /// How many sampled lines of the iteration before were gone after each of them.
        gone: Vec<u32>,
        /// How many lines the samples had.
        of: Vec<u32>,
    },
    /// The uncommitted diff only grows, and something fails each time.
    GrowingDiff {
        /// The iterations in which that was so.
        iterations: Vec<u32>,
        /// Its lines after each of them.
        lines: Vec<u64>,
    },
    /// Files went through the same states again.
    Cycle {
        /// After how many states they repeat.
        period: u32,
        /// The files; empty if it is the whole repository.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        /// The iterations that changed them.
        iterations: Vec<u32>,
    },
    /// The same files were reformatted to and fro.
    Reformatting {
        /// One of the files.
        file: String,
        /// The iterations that changed only the formatting.
        iterations: Vec<u32>,
    },
    /// Commands ran and nothing changed.
    Reading {
        /// The iterations in which that was so.
        iterations: Vec<u32>,
        /// How many commands ran in each of them.
        commands: Vec<u32>,
    },
    /// No box was ticked, no new commit was kept, and the tests did not improve.
    NoProgress {
        /// The iterations in which that was so.
        iterations: Vec<u32>,
    },
    /// A failure looks the same each time, and the problems behind it change.
    MovedOn {
        /// One of the problems of the last iteration.
        problem: String,
        /// The iterations in which it failed.
        iterations: Vec<u32>,
    },
    /// A box was ticked or the tests improved shortly before, and that still holds.
    RecentProgress {
        /// The iteration that made the progress.
        iteration: u32,
    },
    /// Fewer tests fail than before: whatever repeats, the run gets closer.
    TestsCloser {
        /// The fewest that failed before; none where they could not be counted.
        failed_before: Option<u64>,
        /// How many fail now.
        failed_now: Option<u64>,
        /// The iteration that had the fewest before.
        since: u32,
    },
}

/// A file that went back and forth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrashedFile {
    /// The file.
    pub path: String,
    /// The iterations that changed it.
    pub iterations: Vec<u32>,
}

impl GutterSignal {
    /// Returns what it adds to the score, in tenths.
    pub fn tenths(&self) -> i32 {
        match self {
            Self::RepeatedFailure { .. } | Self::Reformatting { .. } => 5,
            Self::Stagnation { .. } | Self::Rewriting { .. } | Self::GrowingDiff { .. } => 3,
            Self::FileThrash { .. } => 2,
            Self::Idle { .. } | Self::Reading { .. } | Self::SameProblem { .. } => 4,
            Self::Cycle { .. } | Self::NoProgress { .. } => 7,
            // As much as a repeated failure: that one is no circle if fewer tests fail each time.
            Self::TestsCloser { .. } | Self::MovedOn { .. } | Self::RecentProgress { .. } => -5,
        }
    }

    /// Returns its name, as it is written down.
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
