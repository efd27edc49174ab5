//! Issues as the source of work: `ralph issue` works on one issue, `ralph poll` on every issue that is ready.
//!
//! - [`IssueRepository`] is a repository with its issue tracker, its settings and its records.
//! - [`work_on_issue`] decides whether an issue can start, claims it (`claim`), starts or resumes its run
//!   (`start`), and records the result in its labels and in one comment (`settle`). `claim_record` stores the claim
//!   before the labels change.
//! - `write_back` writes marks and notes to the issue while the run works.
//! - [`follow_issue`] does the same for a run that another command continues.
//! - [`poll_issues`] looks for ready issues, unblocks those whose dependencies are done, and continues those that
//!   an earlier process of this machine left.
//! - [`IssueOverview`] lists the issues with what each waits for.
//! - [`IssueFrontEnd`] shows the progress and drives the runs.

mod claim;
mod claim_record;
mod comments;
mod dependencies;
mod error;
mod front_end;
mod overview;
mod poll;
mod records;
mod repository;
mod resumed_run;
mod settle;
mod start;
#[cfg(test)]
mod tests;
mod work;
mod write_back;

pub use front_end::{IssueEnd, IssueEvent, IssueFrontEnd, UnmetDependencies, WaitingIssue};
pub use overview::{IssueEntry, IssueEntryStatus, IssueOverview};
pub use poll::{PollEnd, PollOptions, poll_issues};
pub use repository::IssueRepository;
pub use resumed_run::follow_issue;
pub use start::{IssueRunOptions, PendingRebuild};
pub use work::{IssueCaller, work_on_issue};
