//! The results of a run, for the user: changes, iterations, the pull request, merging and
//! discarding.
//!
//! - [`run_diff`] and [`iteration_diff`] return changes, [`iteration_report`] the files of an
//!   iteration, [`find_transcript`] the output of its agent.
//! - [`close_if_merged`] updates a pull request whose branch the user merged, [`merge_run`] merges it.
//! - [`discard_run`] removes branch and sandbox.

mod changes;
mod discard;
mod iteration_report;
mod merge;
mod pull_request;

pub use changes::{iteration_diff, run_diff};
pub use discard::{DiscardReport, RemainingOnHost, discard_run, remove_ended_sandboxes};
pub use iteration_report::{
    IterationReport, IterationSection, TextLimit, TranscriptFile, find_transcript, iteration_report,
};
pub use merge::{MergeConsent, MergeKind, MergeReport, merge_run};
pub use pull_request::{PullRequestReport, close_if_merged, pull_request};
