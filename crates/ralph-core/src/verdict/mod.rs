//! The success rule: the conditions for a green verdict.
//!
//! When the model claims to be done, the engine calls [`may_finish`], runs every check in a clean
//! room, counts the tests in their output with [`count_tests`] and calls [`judge`]. The model has
//! no influence on any of these steps.

mod completion;
mod finding;
mod judge;
mod runners;
mod test_count;

pub use completion::{CompletionState, may_finish};
pub use finding::{FindingKind, VerifyFinding};
pub use judge::{CheckResult, Verdict, judge};
pub use test_count::{TestCount, count_tests};
