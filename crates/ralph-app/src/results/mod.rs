//! The results of a run, for the user: changes, iterations, the pull request, merging and
//! discarding.
//!
//! - [`run_diff`] and [`iteration_diff`] return changes, [`iteration_report`] the files of an
//!   iteration, [`find_transcript`] the output of its agent.
//! - [`iteration_summaries`] and [`timeline`] describe all iterations and actions, [`evidence`] the checks.
//! - [`open_workspace`] reads the files in the sandbox.
//! - [`close_if_merged`] updates a pull request whose branch the user merged, [`merge_run`] merges it.
//! - [`discard_run`] removes branch and sandbox.

mod changes;
mod discard;
mod evidence;
mod iteration_report;
mod iteration_summary;
mod merge;
mod pull_request;
mod timeline;
mod transcript;
mod workspace;

pub use changes::{iteration_diff, iteration_directory, run_diff};
pub use discard::{DiscardReport, RemainingOnHost, discard_run, remove_ended_sandboxes};
pub use evidence::{BaselineEvidence, ChangedFiles, CheckEvidence, Evidence, Verdict, evidence};
pub use iteration_report::{
    IterationReport, IterationSection, TextLimit, TranscriptFile, find_transcript, iteration_report,
};
pub use iteration_summary::{IterationSummary, iteration_summaries};
pub use merge::{MergeConsent, MergeKind, MergeReport, merge_run};
pub use pull_request::{PullRequestReport, close_if_merged, pull_request};
pub use timeline::{ActionState, Timeline, TimelineAction, TimelineRange, timeline};
pub use transcript::{Transcript, transcript};
pub use workspace::{
    OpenWorkspace, WorkspaceEntryKind, WorkspaceFile, WorkspaceFileError, WorkspaceListing,
    WorkspacePatch, WorkspaceSource, open_workspace,
};
