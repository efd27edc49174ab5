//! Detects that a run is circling.
//!
//! Every iteration leaves bounded [`IterationFacts`]: failures with their signatures, changed files
//! with their new content ids, and test results. The most recent ones form the
//! [`IterationWindow`]. [`measure`] evaluates it and returns [`GutterSignal`]s, each with its
//! evidence: commands, files and iterations. Their sum is a [`LoopScore`] between 0.0 and 1.0. A
//! run with a score of at least 0.7 is circling, which the code and the journal call a gutter.
//!
//! The engine collects the facts at the end of an iteration, [`state`](crate::state) stores the
//! window, and [`mitigation`](crate::mitigation) chooses the countermeasure.

mod circles;
mod code;
mod evidence;
mod facts;
mod failure_signature;
mod normalisation_rules;
mod problems;
mod progress;
mod report;
mod score;
mod signal;
mod window;

pub use code::CodeChange;
pub use facts::{FailureFacts, FileState, IterationFacts, TestFacts};
pub use failure_signature::signature;
pub use problems::{OutputProblem, OutputProblems};
pub use report::GutterReport;
pub use score::LoopScore;
pub use signal::{GutterSignal, ThrashedFile};
pub use window::{GutterMeasurement, GutterSettings, IterationWindow, measure};

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod pattern_tests;
#[cfg(test)]
mod tests;
