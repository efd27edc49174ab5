//! The figures in events: of an iteration, of a diff, of a file.

use serde::{Deserialize, Serialize};

use crate::gutter;
use crate::id::{CommitId, Digest};
use crate::money::Usd;
use crate::ports::TokenUsage;
use crate::verdict::TestCount;

/// What changed in the repository during an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffSize {
    /// Files touched.
    pub files: u64,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// How far a file that only grows had grown, and the digest of all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Its length.
    pub bytes: u64,
    /// The digest of these bytes.
    pub sha256: Digest,
}

/// The figures of one iteration; also `metrics.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationMetrics {
    /// Its number.
    pub iteration: u32,
    /// From start to end.
    pub duration_ms: u64,
    /// Waiting for the model.
    pub model_ms: u64,
    /// Running commands: the model's, verify commands and tests.
    pub command_ms: u64,
    /// Model calls, all attempts.
    pub model_calls: u32,
    /// Tokens of all attempts.
    pub usage: TokenUsage,
    /// Cost of all attempts.
    pub cost_usd: Usd,
    /// Whether the reply had to be repaired before it could be read.
    pub repaired: bool,
    /// Actions in the reply.
    pub actions: usize,
    /// Of these, performed with success.
    pub actions_ok: usize,
    /// Size of the prompt.
    pub prompt_bytes: usize,
    /// What changed.
    pub diff: DiffSize,
    /// Exit code of the last run of the test command, if it ran.
    pub test_exit_code: Option<i32>,
    /// Its tests, if they could be counted.
    pub tests: Option<TestCount>,
    /// Boxes that were ticked at the end.
    pub boxes_ticked: usize,
    /// All boxes.
    pub boxes_total: usize,
    /// How much it looks like going in circles, if that was measured.
    pub loop_score: Option<f64>,
    /// What that is made of, and what is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gutter: Option<Box<gutter::GutterReport>>,
    /// The branch's commit at the end.
    pub head: CommitId,
}
