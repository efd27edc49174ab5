//! Checks of the machine, the project and the sandbox providers.
//!
//! - [`run_preflight`] checks everything that a run needs and changes nothing; [`check_start`] runs the
//!   same checks before a run starts.
//! - [`run_selftest`] tries out a sandbox provider with a real sandbox.
//! - A [`CheckSink`] receives each [`CheckOutcome`] as soon as it is known; a [`CheckSummary`] is the JSON of all.
//! - [`review_project`] reviews everything that a repository proposes.

mod outcome;
mod preflight;
mod selftest;
mod summary;
mod trust_review;

pub use outcome::{CheckOutcome, CheckSink};
pub use preflight::{StartFindings, check_start, run_preflight};
pub use selftest::{SelftestRequest, load_project_config, run_selftest};
pub use summary::{CheckCounts, CheckEntry, CheckProblem, CheckStatus, CheckSummary};
pub use trust_review::{review_project, reviewed_directory};
