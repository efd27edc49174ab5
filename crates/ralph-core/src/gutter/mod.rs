//! Notices that a run goes in circles, from facts alone.
//!
//! Every iteration leaves a few bounded [`IterationFacts`]: what failed and how that looked, which files
//! changed to what, how the tests went. The last of them are the [`IterationWindow`]; [`measure`] weighs it
//! and says why: each [`GutterSignal`] carries its evidence, the commands, files and iterations it speaks
//! of. The sum is a [`LoopScore`] between 0.0 and 1.0, and 0.7 is a gutter.
//!
//! The engine collects the facts at the end of an iteration, [`state`](crate::state) keeps the
//! window, [`mitigation`](crate::mitigation) decides what to do about a gutter.

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
