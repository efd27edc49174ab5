//! What an iteration's record says about going in circles.

use serde::{Deserialize, Serialize};

use super::{GutterSignal, IterationFacts};
use crate::mitigation::{Ladder, MitigationStep, SkippedRung};

/// The part of an iteration's figures that is about going in circles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GutterReport {
    /// What the score is made of.
    pub signals: Vec<GutterSignal>,
    /// Where the run stands on the ladder afterwards.
    pub ladder: Ladder,
    /// What is done about it, if it is a gutter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<MitigationStep>,
    /// The rungs that were not there to be taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedRung>,
    /// What it was measured from.
    pub facts: IterationFacts,
}
