//! What a check's command line runs: its test runner, the files that it executes or reads through,
//! and code in a diff that could fake its result.
//!
//! Commands are split conservatively by `shell`: where a construct is not understood, nothing is
//! concluded from it. Findings are reasons for a reviewer to look, not proofs.

mod counting;
mod inputs;
mod listing;
mod protect;
mod shadow;
mod shell;
mod suspect;

pub use counting::{CountCheck, CountVerdict, fewer_tests};
pub use inputs::{CheckInputs, LineChanges, TrackedFiles, changed_inputs};
pub use listing::{Listing, TestRunner};
pub use protect::{protected, protected_finding};
pub use shadow::shadowing;
pub use shell::SimpleCommand;
pub use suspect::{AddedLine, suspects};

/// Tells whether a path ends with an extension.
fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, end)| end == extension)
}
