//! The circling measurement in the record of an iteration.

use serde::{Deserialize, Serialize};

use super::{GutterSignal, IterationFacts};
use crate::mitigation::{Ladder, MitigationStep, SkippedRung};

/// The circling measurement of an iteration with its consequences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GutterReport {
    /// The components of the score.
    pub signals: Vec<GutterSignal>,
    /// The position on the mitigation ladder after the iteration.
    pub ladder: Ladder,
    /// The countermeasure, if the run is circling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<MitigationStep>,
    /// The rungs that were not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedRung>,
    /// The facts that were measured.
    pub facts: IterationFacts,
}
