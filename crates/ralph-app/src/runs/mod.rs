//! Starting, resuming and describing runs.
//!
//! - [`require_approval`] and [`find_unfinished`] decide whether a run may start;
//!   [`StartQuestions`] asks the user.
//! - [`prepare_start`] and [`prepare_resume`] return a [`ReadyRun`], which a front end drives and
//!   displays.
//! - [`RunSummary`] and [`SteeringDetails`] describe a run, [`FollowedRuns`] all unfinished ones.

mod approval;
mod create_run;
mod followed_runs;
mod ready_run;
mod resume;
mod start;
mod steering_details;
mod summary;
mod unfinished_run;

pub use approval::{ApprovalMode, StartQuestions, require_approval};
pub use create_run::UnfinishedRunPolicy;
pub use followed_runs::{DescribeActivity, FollowedRuns, RunActivity};
pub use ready_run::ReadyRun;
pub use resume::{ResumeOutcome, prepare_resume};
pub use start::{RunStart, plan_start, prepare_start};
pub use steering_details::{BlockedHostEntry, MessageEntry, ShownProviderTool, SteeringDetails};
pub use summary::{
    DAMAGED, INTERRUPTED, NEEDS_UPGRADE, PullRequestSummary, RunSummary, TokenTotals,
    interrupted_hint,
};
pub use unfinished_run::{UnfinishedRun, UnfinishedRunChoice, find_unfinished};
