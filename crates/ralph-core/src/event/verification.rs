//! Events of the checks outside of iterations.

use serde::{Deserialize, Serialize};

use crate::id::{CommitId, Digest};
use crate::verdict::{CheckResult, VerifyFinding};

/// The checks at the base commit and in clean rooms, and the verdicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum VerificationEvent {
    /// Intent: the checks are about to run at the base commit, before any work.
    BaselineStarted { commit: CommitId },
    /// The checks ran at the base commit, or their results are known from an earlier run.
    BaselineFinished {
        commit: CommitId,
        contract: Digest,
        checks: Vec<CheckResult>,
        /// The names of the checks that are green there.
        green: Vec<String>,
        cached: bool,
    },
    /// Intent: the command of a check is about to run.
    CheckStarted { command: String },
    /// Intent: a commit is about to be verified in a clean room.
    VerifyStarted { head: CommitId },
    /// The verdict of the clean rooms.
    VerifyFinished {
        head: CommitId,
        contract: Digest,
        green: bool,
        checks: Vec<CheckResult>,
        reasons: Vec<String>,
        /// Findings that qualify a green verdict, the most important first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<VerifyFinding>,
    },
    /// The user resumed a run that was paused because of changed tests, and so approved the changes.
    TestChangesApproved { digest: Digest },
    /// The model's request to end with success was rejected.
    SuccessRefused {
        iteration: u32,
        reasons: Vec<String>,
    },
}

impl VerificationEvent {
    pub(super) const TYPES: &[&str] = &[
        "baseline_started",
        "baseline_finished",
        "check_started",
        "verify_started",
        "verify_finished",
        "test_changes_approved",
        "success_refused",
    ];
}
