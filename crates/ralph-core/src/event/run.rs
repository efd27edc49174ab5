//! Events of the run as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Adoption, LogPosition};
use crate::budget::{Budget, BudgetLimits};
use crate::id::Digest;
use crate::plan::RunPlan;
use crate::profile::ModelChoice;
use crate::run::RunStatus;
use crate::task::RunMode;

/// The run's status, terms and model, and records that belong to no iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run exists. Always the first event.
    RunCreated { plan: Box<RunPlan> },
    /// A process took ownership of the run. Each opening has a higher epoch.
    RunOpened {
        epoch: u32,
        pid: u32,
        /// The version of ralph; older journals do not record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ralph: Option<String>,
    },
    /// The directory of the run was lost, and the user confirmed that it is rebuilt from a copy.
    RunAdopted { adoption: Box<Adoption> },
    /// The run has a new status.
    StatusChanged {
        #[serde(flatten)]
        status: RunStatus,
    },
    /// The user or the doctor changed the task file; the change applies from the next iteration.
    ContractChanged {
        contract: Digest,
        changes: Vec<String>,
        limits: BudgetLimits,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<RunMode>,
        /// The new number of checkboxes; older journals do not record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkboxes: Option<usize>,
    },
    /// The user set budgets; these are all limits from now on.
    LimitsChanged { limits: BudgetLimits },
    /// The changed task file is invalid; the previous one stays in force.
    ContractRejected { why: String },
    /// The user changed how far users may intervene; the change applies from now on.
    ModeChanged { mode: RunMode },
    /// This model is used from the next call.
    ModelChosen { choice: Box<ModelChoice> },
    /// The requested profile cannot be used; the model stays the same.
    ProfileRejected { profile: String, why: String },
    /// A usage limit is reached, and the run waits until it is reset.
    QuotaCountdown {
        iteration: u32,
        until: jiff::Timestamp,
        left_ms: u64,
    },
    /// The model's provider is not available, and the run waits for its next attempt.
    ProviderCountdown {
        iteration: u32,
        until: jiff::Timestamp,
        left_ms: u64,
    },
    /// A budget is nearly used up.
    BudgetWarning { budget: Budget, percent: u8 },
    /// Lengths and digests of the run's files when a process finished its work on the run, by path
    /// below the run's directory. `ralph audit` compares them.
    FilesRecorded {
        files: BTreeMap<String, LogPosition>,
    },
    /// A command or a call is in progress. Recorded periodically, so that its time still counts if
    /// the runner is killed.
    StillActive {},
    /// A message for the user.
    Notice { message: String },
}

impl RunEvent {
    pub(super) const TYPES: &[&str] = &[
        "run_created",
        "run_opened",
        "run_adopted",
        "status_changed",
        "contract_changed",
        "limits_changed",
        "contract_rejected",
        "mode_changed",
        "model_chosen",
        "profile_rejected",
        "quota_countdown",
        "provider_countdown",
        "budget_warning",
        "files_recorded",
        "still_active",
        "notice",
    ];
}
