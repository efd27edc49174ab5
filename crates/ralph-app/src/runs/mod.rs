//! Starting, resuming and describing runs.
//!
//! - [`require_approval`] and [`find_unfinished`] decide whether a run may start;
//!   [`StartQuestions`] asks the user.
//! - [`prepare_start`] and [`prepare_resume`] return a [`ReadyRun`], which a front end drives and
//!   displays.
//! - [`Notifier`] notifies the user when a process ends its work on a run.
//! - [`set_limits`] sets the budgets of a run before it is resumed.
//! - [`remove_run`] and [`collect_garbage`] remove the directories of runs.
//! - [`continues_unattended`] names the runs that a server continues; [`pause_unattended`] pauses one that
//!   its own thread could not pause.
//! - [`OrphanedRuns`] finds runs whose directory is gone, [`inspect_orphan`] rebuilds one.
//! - [`attention`] lists what a run needs from the user.
//! - [`RunSummary`] and [`SteeringDetails`] describe a run, [`FollowedRuns`] all unfinished ones.

mod activity_label;
mod adopt;
mod approval;
mod attention;
mod continue_run;
mod cost;
mod create_run;
mod details;
mod disk_use;
mod followed_runs;
mod measured_run;
mod notify;
mod notify_channels;
mod orphans;
mod ready_run;
mod removal;
mod resume;
mod sandbox_details;
mod saved_plan;
mod shared_objects;
mod start;
mod steering_details;
mod summary;
mod unattended_pause;
mod unfinished_run;

pub use activity_label::{action_label, activity_label, asking_label, working_label};
pub use adopt::{AdoptedContract, AdoptionOptions, PendingAdoption, inspect_orphan};
pub use approval::{ApprovalMode, StartQuestions, confirm_sandbox, require_approval};
pub use attention::{AttentionAnswer, AttentionItem, AttentionKind, attention};
pub use continue_run::{require_useful_limits, set_limits};
pub use cost::{CostGrouping, CostReport, CostRow, CostStart, CostTotals, cost_report};
pub use create_run::UnfinishedRunPolicy;
pub use details::{
    BudgetEntry, CheckboxEntry, FallbackAgentDetails, RunBudgets, RunDetails, VerifiedCommit,
};
pub use disk_use::{GcEntry, GcMode, GcReport, GcVerdict, collect_garbage};
pub use followed_runs::{FollowedRuns, RunActivity};
pub use notify::Notifier;
pub use orphans::{ORPHANED, OrphanedRun, OrphanedRuns, SavedRun, remove_orphan};
pub use ralph_engine::setup::SetupGarbageScope;
pub use ready_run::{ReadyRun, RunObserver};
pub use removal::{RemovalGuard, RemovedRun, remove_run};
pub use resume::{ResumeOutcome, prepare_resume};
pub use sandbox_details::{SandboxDetails, SandboxState, sandbox_details};
pub use saved_plan::SavedPlan;
pub use shared_objects::SharedObjects;
pub use start::{OnReserved, PlanPreview, RunStart, plan_start, prepare_start, preview_start};
pub use steering_details::{BlockedHostEntry, MessageEntry, ShownProviderTool, SteeringDetails};
pub use summary::{
    DAMAGED, INTERRUPTED, NEEDS_UPGRADE, PullRequestSummary, QUEUED, RunSummary, TokenTotals,
    interrupted_hint,
};
pub use unattended_pause::{UnattendedPause, continues_unattended, pause_unattended};
pub use unfinished_run::{UnfinishedRun, UnfinishedRunChoice, find_unfinished};
