//! The settings of a task: the front matter, validated and typed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::agent_choice::AgentChoice;
use super::branch::{self, BranchName};
use super::repo_url::RepoUrl;
use crate::budget::BudgetLimits;
use crate::gutter;
use crate::id::TaskId;
use crate::money::Usd;
use crate::plan::EngineKind;
use crate::publish::{CiOverrides, OverlapAction};

/// The front matter of a task, created only by [`TaskFile::parse`](super::TaskFile::parse).
///
/// Missing budgets are `None`, so that [`lint`](crate::lint::lint) can report them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    pub task_id: TaskId,
    /// `None` means the repository that contains the task file.
    pub repo_url: Option<RepoUrl>,
    /// The branch that the work starts from and is merged into; defaults to the repository's
    /// default.
    pub base_branch: Option<BranchName>,
    /// Start of the run's branch name, such as `ralph/task-001/`.
    pub target_branch_prefix: Option<String>,
    /// End of the run's branch name, such as `implement-foo`.
    pub target_branch_slug: Option<String>,
    pub sandbox_provider: Option<SandboxKind>,
    pub sandbox_image: Option<String>,
    pub sandbox_resources: Option<SandboxResources>,
    /// The model profile to start with.
    pub model_profile_default: Option<String>,
    /// The model profile for a run that is circling.
    pub model_profile_fallback: Option<String>,
    pub max_iterations: Option<u32>,
    /// Time in pauses does not count.
    pub max_wall_time_minutes: Option<u32>,
    /// Limit for the estimated cost of model calls.
    pub max_cost_usd_estimate: Option<Usd>,
    /// Limit for input and output tokens together.
    pub max_tokens_total: Option<u64>,
    /// Consecutive circling iterations after which a run that was already paused for circling fails;
    /// see [`Contract::gutter_limit`].
    pub max_consecutive_gutter: Option<u32>,
    /// Iterations with fewer changed lines count as almost unchanged; see
    /// [`Contract::gutter_settings`].
    #[serde(default)]
    pub min_net_lines: Option<u32>,
    /// The doctor is consulted every this many iterations; 0 disables that.
    #[serde(default)]
    pub doctor_every: Option<u32>,
    #[serde(default)]
    pub doctor_profile: Option<String>,
    #[serde(default)]
    pub doctor_apply: DoctorApply,
    /// Commands that the user may start in the mode `debug`, by id.
    #[serde(default)]
    pub debug_commands: BTreeMap<String, String>,
    /// Installs the dependencies, before the work and before each check.
    #[serde(default)]
    pub setup_command: Option<String>,
    /// The files whose content decides whether set-up runs again; empty means that they are found.
    #[serde(default)]
    pub lockfiles: Vec<String>,
    /// The command that must succeed.
    pub test_command: Option<String>,
    /// Further commands that must succeed.
    #[serde(default)]
    pub verify_commands: Vec<String>,
    #[serde(default)]
    pub verification: VerificationSettings,
    #[serde(default)]
    pub pr: PullSettings,
    #[serde(default)]
    pub ci: CiOverrides,
    /// Whether reviews that request changes are given to the model; `None` means as configured.
    #[serde(default)]
    pub respond_to_reviews: Option<bool>,
    /// `None` means as configured.
    #[serde(default)]
    pub overlap: Option<OverlapAction>,
    /// Whether the files in `.ralph/` are committed to the run's branch.
    #[serde(default)]
    pub commit_state: bool,
    #[serde(default)]
    pub on_action_error: OnActionError,
    /// Whether the run may change CI workflow files.
    #[serde(default)]
    pub allow_workflow_changes: bool,
    #[serde(default)]
    pub engine: EngineKind,
    /// `None` means the default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The agent, and its model, that replaces the agent when the run circles or the agent's provider
    /// is not usable.
    #[serde(default)]
    pub agent_fallback: Option<AgentChoice>,
    #[serde(default)]
    pub mode: RunMode,
}

impl Contract {
    /// The default of `max_consecutive_gutter`.
    pub const DEFAULT_GUTTER_LIMIT: u32 = 3;

    /// Returns the budgets of a run of this task.
    pub fn limits(&self) -> BudgetLimits {
        BudgetLimits {
            max_iterations: self.max_iterations,
            max_wall_time: self
                .max_wall_time_minutes
                .map(|minutes| Duration::from_mins(u64::from(minutes))),
            max_cost: self.max_cost_usd_estimate,
            max_tokens: self.max_tokens_total,
        }
    }

    /// Returns the limit for consecutive circling iterations.
    pub fn gutter_limit(&self) -> u32 {
        self.max_consecutive_gutter
            .unwrap_or(Self::DEFAULT_GUTTER_LIMIT)
    }

    /// Returns the settings for measuring progress.
    pub fn gutter_settings(&self) -> gutter::GutterSettings {
        let defaults = gutter::GutterSettings::default();
        gutter::GutterSettings {
            min_net_lines: self.min_net_lines.map_or(defaults.min_net_lines, u64::from),
        }
    }

    /// Returns the commands that verify a box without its own: `verify_commands`, or else the test
    /// command.
    pub fn default_box_commands(&self) -> Vec<&str> {
        if self.verify_commands.is_empty() {
            return self.test_command.as_deref().into_iter().collect();
        }
        self.verify_commands.iter().map(String::as_str).collect()
    }

    /// Returns the name of the run's branch, by default `ralph/<task_id>/<slug>` with a slug
    /// derived from the title. A title that starts like the id does not repeat it.
    pub fn branch(&self, title: Option<&str>) -> String {
        let prefix = self.target_branch_prefix.clone();
        let prefix = prefix.unwrap_or_else(|| format!("ralph/{}/", self.task_id));
        let slug = self.target_branch_slug.clone();
        let slug = slug.unwrap_or_else(|| {
            let slug = branch::slug(title.unwrap_or_default());
            match self.target_branch_prefix {
                Some(_) => slug,
                None => branch::without_id(&slug, self.task_id.as_str()),
            }
        });
        format!("{prefix}{slug}")
    }
}

/// The kind of sandbox that commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxKind {
    /// Processes on this machine, without isolation.
    Local,
    /// A container.
    Docker,
    /// A small virtual machine run by Docker.
    DockerSandbox,
    /// A macOS virtual machine.
    Tart,
    /// A remote sandbox.
    Daytona,
}

impl SandboxKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Local,
        Self::Docker,
        Self::DockerSandbox,
        Self::Tart,
        Self::Daytona,
    ];

    /// Returns the name used in the front matter and by `--sandbox`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::DockerSandbox => "docker-sandbox",
            Self::Tart => "tart",
            Self::Daytona => "daytona",
        }
    }
}

/// The size of a sandbox; missing values default to the provider's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxResources {
    pub vcpu: Option<u32>,
    pub memory_gib: Option<u32>,
    pub disk_gib: Option<u32>,
}

/// Settings for the pull request of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullSettings {
    /// Whether a pull request is opened; otherwise only the branch is delivered.
    pub enabled: bool,
    /// Whether it is a draft during the run.
    pub draft: bool,
    /// Whether a draft becomes ready for review when the run succeeds.
    pub ready_on_success: bool,
    pub labels: Vec<String>,
    pub title_template: Option<String>,
    /// Start of the body.
    pub body_template: Option<String>,
}

impl Default for PullSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            draft: true,
            ready_on_success: true,
            labels: Vec::new(),
            title_template: None,
            body_template: None,
        }
    }
}

/// Settings for the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerificationSettings {
    /// Whether the checks run at the base commit before the first iteration.
    pub baseline: bool,
    pub on_test_change: OnTestChange,
    /// Patterns of files that the checks take from the base commit.
    pub protected: Vec<String>,
}

impl Default for VerificationSettings {
    fn default() -> Self {
        Self {
            baseline: true,
            on_test_change: OnTestChange::default(),
            protected: Vec::new(),
        }
    }
}

/// The reaction to changed or removed tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTestChange {
    /// The changes are listed with the run's result.
    #[default]
    Warn,
    /// The run waits before success until the user approves exactly these changes.
    Pause,
    /// The run cannot succeed.
    Refuse,
}

/// The reaction to a failed action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnActionError {
    /// The remaining actions of the iteration are skipped.
    #[default]
    Stop,
    /// The next action is performed.
    Continue,
}

/// How the doctor's proposals are applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorApply {
    /// By the user, with one command.
    #[default]
    Ask,
    /// Automatically and immediately, unless a proposal could weaken the task.
    Auto,
}

/// How far the user can intervene.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// The user edits the task, guardrails and notes, and controls the run.
    #[default]
    Autonomous,
    /// The user also adds notes and sends messages.
    Guided,
    /// The user also starts commands from a fixed list.
    Debug,
}

impl RunMode {
    /// Returns the value used in the front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Autonomous => "autonomous",
            Self::Guided => "guided",
            Self::Debug => "debug",
        }
    }
}
