//! The rule of success: what a run must show before it is green.
//!
//! The engine asks [`may_finish`] when the model says it is done, runs every check in a clean room,
//! counts the tests in their output with [`count_tests`] and lets [`judge`] decide. The model has
//! no say in any of it.

mod completion;
mod finding;
mod judge;
mod runners;
mod test_count;

pub use completion::{CompletionState, may_finish};
pub use finding::{FindingKind, VerifyFinding};
pub use judge::{CheckResult, Verdict, judge};
pub use test_count::{TestCount, count_tests};
