//! Facts that qualify a green verdict.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A fact about a verdict that a reviewer must know. A success without findings is unqualified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyFinding {
    pub kind: FindingKind,
    /// One sentence that names the check, the files and the numbers.
    pub text: String,
}

impl VerifyFinding {
    /// Creates a finding.
    pub fn new(kind: FindingKind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }
}

/// The kinds of findings, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Existing tests prove less than at the base commit, or are deleted.
    WeakenedTest,
    /// The checks failed on the same commit before.
    Flaky,
    /// The tests of the base commit fail on the new code.
    OldTestsFail,
    /// Fewer tests ran than the base commit has.
    FewerTests,
    /// A file shadows a test runner or a dependency.
    Shadowing,
    /// The new code can end a test run early, print a fake result or detect that it is being
    /// checked.
    SuspectCode,
    /// The branch contains the commit of another repository instead of its files.
    NestedRepository,
    /// A file that a check reads or runs was changed.
    ChangedInput,
    /// Protected files were changed; the checks used those of the base commit.
    Protected,
    /// A check modified files of the commit.
    RewrittenFiles,
    /// The number of tests could not be confirmed.
    UnconfirmedCount,
    /// Tests were changed, and those of the base commit pass on the new code, too.
    OldTestsPass,
}
