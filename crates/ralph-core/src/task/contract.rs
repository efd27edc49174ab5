//! The machine part of a task: what the front matter says, checked and typed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::branch::{self, BranchName};
use super::repo_url::RepoUrl;
use crate::budget::BudgetLimits;
use crate::gutter;
use crate::id::TaskId;
use crate::money::Usd;
use crate::plan::EngineKind;

/// The front matter of a task. Only [`TaskFile::parse`](super::TaskFile::parse) makes one from a file.
///
/// Budgets that are not given are `None`, so that [`lint`](crate::lint::lint) can ask for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The stable name of the task.
    pub task_id: TaskId,
    /// The repository; none means the one that contains the task file.
    pub repo_url: Option<RepoUrl>,
    /// The branch the work starts from and goes back to; none means the repository's own default.
    pub base_branch: Option<BranchName>,
    /// What the name of the run's branch starts with, such as `ralph/task-001/`.
    pub target_branch_prefix: Option<String>,
    /// What the name of the run's branch ends with, such as `implement-foo`.
    pub target_branch_slug: Option<String>,
    /// Where commands run.
    pub sandbox_provider: Option<SandboxKind>,
    /// The image of the sandbox.
    pub sandbox_image: Option<String>,
    /// The size of the sandbox.
    pub sandbox_resources: Option<SandboxResources>,
    /// The model profile that is used first.
    pub model_profile_default: Option<String>,
    /// The model profile that is switched to when a run goes in circles.
    pub model_profile_fallback: Option<String>,
    /// How many iterations a run may start.
    pub max_iterations: Option<u32>,
    /// How many minutes a run may take, pauses not counted.
    pub max_wall_time_minutes: Option<u32>,
    /// How much the model calls may cost.
    pub max_cost_usd_estimate: Option<Usd>,
    /// How many tokens the model calls may use, input and output together.
    pub max_tokens_total: Option<u64>,
    /// How often a run may be found going in circles in a row; see [`Contract::gutter_limit`].
    pub max_consecutive_gutter: Option<u32>,
    /// Fewer changed lines than this are hardly a change; see [`Contract::gutter_settings`].
    #[serde(default)]
    pub min_net_lines: Option<u32>,
    /// After so many iterations the doctor looks at the run; 0 is never.
    #[serde(default)]
    pub doctor_every: Option<u32>,
    /// The model profile of the doctor.
    #[serde(default)]
    pub doctor_profile: Option<String>,
    /// Who applies what the doctor proposes.
    #[serde(default)]
    pub doctor_apply: DoctorApply,
    /// Commands that a person may start in the mode `debug`, by id.
    #[serde(default)]
    pub debug_commands: BTreeMap<String, String>,
    /// The command that must be green.
    pub test_command: Option<String>,
    /// Commands that must be green besides.
    #[serde(default)]
    pub verify_commands: Vec<String>,
    /// How the checks run, and what follows when tests were changed.
    #[serde(default)]
    pub verification: VerificationSettings,
    /// What the pull request should be like.
    #[serde(default)]
    pub pr: PullSettings,
    /// Whether the files under `.ralph/` are committed to the run's branch.
    #[serde(default)]
    pub commit_state: bool,
    /// What follows an action that fails.
    #[serde(default)]
    pub on_action_error: OnActionError,
    /// Whether the run may change CI workflow files.
    #[serde(default)]
    pub allow_workflow_changes: bool,
    /// Who does the work in an iteration.
    #[serde(default)]
    pub engine: EngineKind,
    /// The agent that does the work, where one does; none means the usual one.
    #[serde(default)]
    pub agent: Option<String>,
    /// How far people may step in.
    #[serde(default)]
    pub mode: RunMode,
}

impl Contract {
    /// What `max_consecutive_gutter` is unless the task says otherwise.
    pub const DEFAULT_GUTTER_LIMIT: u32 = 3;

    /// Returns what a run of this task may spend.
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

    /// Returns how often a run may be found going in circles in a row.
    pub fn gutter_limit(&self) -> u32 {
        self.max_consecutive_gutter
            .unwrap_or(Self::DEFAULT_GUTTER_LIMIT)
    }

    /// Returns how circling is measured.
    pub fn gutter_settings(&self) -> gutter::GutterSettings {
        let defaults = gutter::GutterSettings::default();
        gutter::GutterSettings {
            min_net_lines: self.min_net_lines.map_or(defaults.min_net_lines, u64::from),
        }
    }

    /// Returns the name of the run's branch, `ralph/<task_id>/<slug>` unless the task says
    /// otherwise; the slug then comes from the title.
    pub fn branch(&self, title: Option<&str>) -> String {
        let prefix = self.target_branch_prefix.clone();
        let prefix = prefix.unwrap_or_else(|| format!("ralph/{}/", self.task_id));
        let slug = self.target_branch_slug.clone();
        let slug = slug.unwrap_or_else(|| branch::slug(title.unwrap_or_default()));
        format!("{prefix}{slug}")
    }
}

/// Where commands run.
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
    /// Returns the name that the front matter and `--sandbox` use.
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

/// The size of a sandbox; what is not given is the provider's choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxResources {
    /// How many processors.
    pub vcpu: Option<u32>,
    /// How much memory, in GiB.
    pub memory_gib: Option<u32>,
    /// How much disk, in GiB.
    pub disk_gib: Option<u32>,
}

/// What the pull request of a run should be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullSettings {
    /// Whether there is one at all; otherwise only the branch is delivered.
    pub enabled: bool,
    /// Whether it is a draft while the run works.
    pub draft: bool,
    /// Whether a draft becomes ready for review when the run succeeds.
    pub ready_on_success: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its title.
    pub title_template: Option<String>,
    /// What its body starts with.
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

/// How the checks run, and what follows when tests were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerificationSettings {
    /// Whether the checks run at the base commit before the first iteration.
    pub baseline: bool,
    /// What follows when existing tests were changed.
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

/// What follows when existing tests were changed or removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTestChange {
    /// The changes are listed where the run's result is shown.
    #[default]
    Warn,
    /// The run waits before success until a person approves exactly these changes.
    Pause,
    /// The run does not succeed with them.
    Refuse,
}

/// What follows an action that fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnActionError {
    /// The iteration's remaining actions are not performed.
    #[default]
    Stop,
    /// The next action is performed.
    Continue,
}

/// Who applies what the doctor proposes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorApply {
    /// A person, with one command.
    #[default]
    Ask,
    /// The runner, at once, as far as that cannot weaken the task.
    Auto,
}

/// How far people may step in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// They edit the task, guardrails and notes, and control the run.
    #[default]
    Autonomous,
    /// They also give structured hints.
    Guided,
    /// They also start commands from a fixed list.
    Debug,
}

impl RunMode {
    /// Returns the word of the front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Autonomous => "autonomous",
            Self::Guided => "guided",
            Self::Debug => "debug",
        }
    }
}
