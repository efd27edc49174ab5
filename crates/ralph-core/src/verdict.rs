//! Placeholder until the verdict lands.
use crate::ports::Ended;
use serde::{Deserialize, Serialize};
/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Name.
    pub name: String,
    /// Command.
    pub command: String,
    /// End.
    pub ended: Ended,
    /// Duration.
    pub duration_ms: u64,
    /// Tests.
    pub tests: Option<TestCount>,
}
/// Test count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCount {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped.
    pub skipped: u64,
}
