//! Facts that qualify a green verdict.

use serde::{Deserialize, Serialize};

/// Something that a reviewer must know about a verdict. A success without any is unqualified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyFinding {
    /// The kind, which also says how important it is.
    pub kind: FindingKind,
    /// One sentence that names the check, the files and the numbers.
    pub text: String,
}

impl VerifyFinding {
    /// Makes a finding.
    pub fn new(kind: FindingKind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }
}

/// The kinds of findings, the most important one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Existing tests prove less than at the base commit, or are gone.
    WeakenedTest,
    /// The same commit was red before.
    Flaky,
    /// The tests of the base commit fail on the new code.
    OldTestsFail,
    /// Fewer tests ran than the base commit has.
    FewerTests,
    /// A file takes the place of a test runner or of a dependency.
    Shadowing,
    /// The new code can end a test run early, print a result, or notice that it is checked.
    SuspectCode,
    /// The branch holds the commit of another repository instead of its files.
    NestedRepository,
    /// A file that a check reads or runs was changed.
    ChangedInput,
    /// Protected files were changed; the checks used those of the base commit.
    Protected,
    /// A check wrote to files of the commit.
    RewrittenFiles,
    /// The number of tests could not be confirmed.
    UnconfirmedCount,
    /// Tests were changed, and those of the base commit pass on the new code, too.
    OldTestsPass,
}
