//! What an iteration's record says about going in circles.

use serde::{Deserialize, Serialize};

use super::{Facts, Signal};
use crate::mitigation::{Ladder, Skipped, Step};

/// The part of an iteration's figures that is about going in circles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What the score is made of.
    pub signals: Vec<Signal>,
    /// Where the run stands on the ladder afterwards.
    pub ladder: Ladder,
    /// What is done about it, if it is a gutter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The rungs that were not there to be taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// What it was measured from.
    pub facts: Facts,
}
