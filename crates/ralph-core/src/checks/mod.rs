//! Analyses a check's command line: its test runner, the files it executes or reads, and code in a
//! diff that could fake its result.
//!
//! `command_line` splits commands conservatively: an unknown construct leads to no conclusion.
//! Findings are hints for a reviewer, not proofs.

mod command_line;
mod counting;
mod inputs;
mod listing;
mod protected;
mod shadow;
mod suspect;

pub use command_line::SimpleCommand;
pub use counting::{CountCheck, CountVerdict, fewer_tests_finding};
pub use inputs::{CheckInputs, LineChanges, TrackedFiles, changed_input_findings};
pub use listing::{TestListing, TestRunner};
pub use protected::{protected_changes, protected_finding};
pub use shadow::shadowing_finding;
pub use suspect::{AddedLine, suspect_findings};

/// Returns whether a path ends with an extension.
fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, end)| end == extension)
}
