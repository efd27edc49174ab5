//! The measurements in events: of an iteration, a diff, and a file.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::gutter;
use crate::id::{CommitId, Digest};
use crate::money::Usd;
use crate::ports::TokenUsage;
use crate::verdict::TestCount;

/// The size of the changes to the repository during an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffSize {
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines.
    pub added: u64,
    /// Number of removed lines.
    pub removed: u64,
}

/// The length and digest of a file. A log that only grows must still start with these bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    pub bytes: u64,
    /// The digest of these bytes.
    pub sha256: Digest,
}

/// The metrics of one iteration; also the content of `metrics.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IterationMetrics {
    pub iteration: u32,
    pub duration_ms: u64,
    /// The time spent waiting for the model.
    pub model_ms: u64,
    /// The time spent running commands of the model, verify commands and tests.
    pub command_ms: u64,
    /// Number of model calls, including failed attempts.
    pub model_calls: u32,
    /// The tokens of all attempts.
    pub usage: TokenUsage,
    /// The cost of all attempts.
    pub cost_usd: Usd,
    /// Whether the reply had to be repaired before it could be parsed.
    pub repaired: bool,
    /// The number of actions in the reply.
    pub actions: usize,
    /// The number of these that succeeded.
    pub actions_ok: usize,
    /// The size of the prompt.
    pub prompt_bytes: usize,
    pub diff: DiffSize,
    /// The exit code of the last run of the test command, if it ran.
    pub test_exit_code: Option<i32>,
    /// Its tests, if they could be counted.
    pub tests: Option<TestCount>,
    /// The number of boxes that were ticked at the end.
    pub boxes_ticked: usize,
    /// The number of all boxes.
    pub boxes_total: usize,
    /// The loop score, if it was measured.
    pub loop_score: Option<f64>,
    /// The parts of the loop score, and the mitigation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub gutter: Option<Box<gutter::GutterReport>>,
    /// The branch's commit at the end.
    pub head: CommitId,
}
