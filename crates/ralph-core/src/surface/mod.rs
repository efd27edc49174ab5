//! Which changes touch the verification of a run, or run on somebody else's machine.
//!
//! A model that may not change the checks can still change what they call. The engine asks
//! [`touched`] before it pushes; the findings stand in the pull request, and workflow files are
//! refused unless the project allows them. Paths are judged by convention, so a finding is a
//! reason to look and not a proof.

mod entries;
mod ranking;
mod rules;
mod test_diff;
mod touched;

pub use entries::{
    TreeEntry, TreeEntryKind, bare_candidates, bare_repository, is_bare, strange_entries,
};
pub use ranking::{Importance, RankedFinding, ranked};
pub use test_diff::{TestDiff, examine};
pub(crate) use touched::configures_checks;
pub use touched::{Change, ChangedPath, Finding, Surface, existing_tests, is_test, touched};
