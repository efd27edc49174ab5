//! Events of an iteration, apart from the exchange with its model or agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ActionResult, IterationMetrics, IterationOutcome, LogPosition};
use crate::id::{CommitId, Digest};
use crate::mitigation::{MitigationStep, SkippedRung};
use crate::run::RunStatus;
use crate::verdict::CheckResult;

/// An iteration, its actions, claims and tests, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IterationEvent {
    /// An iteration starts.
    IterationStarted { iteration: u32, head: CommitId },
    /// Intent: an action is about to be performed. `after` is the digest a file will have.
    ActionStarted {
        iteration: u32,
        index: usize,
        action: String,
        label: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Digest>,
    },
    /// An action has ended.
    ActionFinished {
        iteration: u32,
        index: usize,
        action: String,
        label: String,
        #[serde(flatten)]
        result: ActionResult,
        duration_ms: u64,
        /// The last lines of output, for the user.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// The runner checked a claimed box, or rejected the claim of a box or milestone.
    ClaimChecked {
        iteration: u32,
        checkbox: String,
        verified: bool,
        why: String,
        checks: Vec<CheckResult>,
    },
    /// The set of ticked boxes changed.
    BoxesTicked { ticked: Vec<String> },
    /// The runner ran the test command in the workspace.
    TestsRun { iteration: u32, check: CheckResult },
    /// An iteration has ended; its files are on disk with these digests.
    IterationFinished {
        iteration: u32,
        summary: String,
        #[serde(flatten)]
        outcome: IterationOutcome,
        metrics: Box<IterationMetrics>,
        files: BTreeMap<String, Digest>,
        logs: BTreeMap<String, LogPosition>,
        /// The next status, unless the next iteration follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<RunStatus>,
    },
    /// The run is circling. Follows the end of the iteration that showed it, whose record is
    /// authoritative.
    Gutter {
        iteration: u32,
        score: f64,
        consecutive: u32,
        evidence: Vec<String>,
        mitigation: MitigationStep,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<SkippedRung>,
    },
}

impl IterationEvent {
    pub(super) const TYPES: &[&str] = &[
        "iteration_started",
        "action_started",
        "action_finished",
        "claim_checked",
        "boxes_ticked",
        "tests_run",
        "iteration_finished",
        "gutter",
    ];
}
