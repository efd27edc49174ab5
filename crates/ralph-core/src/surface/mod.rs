//! Which changes touch the verification of a run, or run on somebody else's machine.
//!
//! A model that may not change the checks can still change what they call. The engine asks
//! [`inspect_changes`] before it pushes; the findings stand in the pull request, and workflow files are
//! refused unless the project allows them. Paths are judged by convention, so a finding is a
//! reason to look and not a proof.

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
