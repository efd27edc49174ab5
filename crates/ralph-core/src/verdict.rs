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
/// v
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// g
    Green,
    /// r
    Red {
        /// r
        reasons: Vec<String>,
    },
}
/// j
pub fn judge(c: &[CheckResult]) -> Verdict {
    let r: Vec<String> = c
        .iter()
        .filter(|c| !c.ended.is_success())
        .map(|c| format!("`{}`: {}", c.command, c.ended))
        .collect();
    if r.is_empty() {
        Verdict::Green
    } else {
        Verdict::Red { reasons: r }
    }
}
/// c
pub fn count_tests(_o: &str) -> Option<TestCount> {
    None
}
/// s
pub struct Standing {
    /// o
    pub open_boxes: Vec<String>,
    /// d
    pub dirty_files: Vec<String>,
    /// c
    pub commits: u64,
}
/// m
pub fn may_finish(s: &Standing) -> Result<(), Vec<String>> {
    if s.open_boxes.is_empty() && s.dirty_files.is_empty() && s.commits > 0 {
        Ok(())
    } else {
        Err(vec![format!(
            "open {:?} dirty {:?}",
            s.open_boxes, s.dirty_files
        )])
    }
}
