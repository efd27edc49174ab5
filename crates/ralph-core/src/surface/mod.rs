//! Detects changes that affect a run's verification or that execute on other machines.
//!
//! A model that may not change the checks can still change the code that they call. The engine
//! calls [`inspect_changes`] before it pushes; the findings are listed in the pull request, and
//! workflow files are rejected unless the project allows them. Paths are judged by convention, so a
//! finding is a hint for the reviewer and not a proof.

mod entries;
mod ranking;
mod rules;
mod test_diff;
mod touched;

pub use entries::{
    TreeEntry, TreeEntryKind, bare_repository_candidates, bare_repository_finding,
    is_bare_repository, suspicious_entries,
};
pub use ranking::{Importance, RankedFinding, rank_findings};
pub use test_diff::{TestDiff, examine_test_diff};
pub(crate) use touched::configures_checks;
pub use touched::{
    ChangedPath, PathChange, Surface, SurfaceFinding, existing_tests, inspect_changes, is_test,
};
