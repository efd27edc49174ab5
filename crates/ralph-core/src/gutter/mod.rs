//! Notices that a run goes in circles, from facts alone.
//!
//! Every iteration leaves a few bounded [`Facts`]: what failed and how that looked, which files
//! changed to what, how the tests went. The last of them are the [`Window`]; [`measure`] weighs it
//! and says why: each [`Signal`] carries its evidence, the commands, files and iterations it speaks
//! of. The sum is a [`Score`] between 0.0 and 1.0, and 0.7 is a gutter.
//!
//! The engine collects the facts at the end of an iteration, [`state`](crate::state) keeps the
//! window, [`mitigation`](crate::mitigation) decides what to do about a gutter.

mod circles;
mod code;
mod evidence;
mod facts;
mod normalise;
mod problems;
mod progress;
mod report;
mod rules;
mod score;
mod signal;
mod window;

pub use code::Code;
pub use facts::{Facts, Failure, FileMark, TestFacts};
pub use normalise::signature;
pub use problems::{Problem, Problems};
pub use report::Report;
pub use score::Score;
pub use signal::{Signal, Thrash};
pub use window::{Measured, Settings, Window, measure};

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod patterns;
#[cfg(test)]
mod tests;
