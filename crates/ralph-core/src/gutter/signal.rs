//! The signals that make up a score, each with its evidence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::Digest;

/// Something that speaks for going in circles, or against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
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
        files: Vec<Thrash>,
    },
    /// Nothing was run and nothing changed.
    Idle {
        /// The iterations in which that was so.
        iterations: Vec<u32>,
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
pub struct Thrash {
    /// The file.
    pub path: String,
    /// The iterations that changed it.
    pub iterations: Vec<u32>,
}

impl Signal {
    /// Returns what it adds to the score, in tenths.
    pub fn tenths(&self) -> i32 {
        match self {
            Self::RepeatedFailure { .. } => 5,
            Self::Stagnation { .. } => 3,
            Self::FileThrash { .. } => 2,
            Self::Idle { .. } => 4,
            // As much as a repeated failure: that one is no circle if fewer tests fail each time.
            Self::TestsCloser { .. } => -5,
        }
    }

    /// Returns its name, as it is written down.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RepeatedFailure { .. } => "repeated_failure",
            Self::Stagnation { .. } => "stagnation",
            Self::FileThrash { .. } => "file_thrash",
            Self::Idle { .. } => "idle",
            Self::TestsCloser { .. } => "tests_closer",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RepeatedFailure {
                command,
                ended,
                iterations,
                ..
            } => {
                let times = iterations.len();
                let numbers = numbers(iterations);
                write!(
                    f,
                    "`{command}` failed {times} times in the same way ({ended}) in iterations {numbers}"
                )
            }
            Self::Stagnation {
                iterations,
                lines,
                enough,
            } => {
                let (numbers, lines) = (numbers(iterations), numbers(lines));
                write!(
                    f,
                    "fewer than {enough} lines changed in each of iterations {numbers} (lines: {lines})"
                )
            }
            Self::FileThrash { files } => {
                let told: Vec<String> = files
                    .iter()
                    .map(|file| {
                        format!("`{}` (iterations {})", file.path, numbers(&file.iterations))
                    })
                    .collect();
                write!(
                    f,
                    "back and forth between two contents: {}",
                    told.join(", ")
                )
            }
            Self::Idle { iterations } => {
                write!(
                    f,
                    "nothing was run and nothing changed in iterations {}",
                    numbers(iterations)
                )
            }
            Self::TestsCloser {
                failed_before: Some(before),
                failed_now: Some(now),
                since,
            } => write!(
                f,
                "getting closer: {now} tests fail, {before} did in iteration {since}"
            ),
            Self::TestsCloser { since, .. } => {
                write!(
                    f,
                    "getting closer: the tests are green, in iteration {since} they were not"
                )
            }
        }
    }
}

fn numbers(of: &[impl ToString]) -> String {
    let texts: Vec<String> = of.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
