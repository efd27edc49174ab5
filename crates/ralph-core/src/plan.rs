//! The complete plan of a run, before the first sandbox exists. `ralph run --dry-run` prints it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::BudgetLimits;
use crate::ecosystem::PackageEcosystem;
use crate::id::{CommitId, Digest, RunId, TaskId};
use crate::net::{Allowlist, EgressPolicy, ProviderTool};
use crate::outage::OutagePolicy;
use crate::ports::{Confinement, Isolation};
use crate::profile::ModelChoice;
use crate::publish::PublishPolicy;
use crate::repo_address::{RemoteRepo, RepoAddress};
use crate::submodule::Submodule;
use crate::task::RunMode;

/// The engine that does the work of an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// The model replies with actions, and ralph performs them.
    #[default]
    Actions,
    /// A coding agent works inside the sandbox.
    Agent,
}

/// Whether a finished run delivers a pull request or only its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// A branch and a pull request.
    PullRequest,
    /// Only a branch.
    Branch,
}

/// The containers of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContainerPlan {
    /// Address of the Docker Engine in the format of `DOCKER_HOST`; `None` means the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    pub image: String,
    /// Thousandths of a CPU; `None` means the default, limited by the machine.
    pub millicpus: Option<u32>,
    /// In bytes; `None` means the default, limited by the machine.
    pub memory: Option<u64>,
    /// Size limit of the workspace, in bytes.
    pub disk: u64,
    /// Limit for processes and threads together.
    pub processes: u32,
    /// Whether everything except the workspace and the temporary directories is read-only.
    pub read_only: bool,
}

/// Limits of a local sandbox, and the protection that this machine supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LocalPlan {
    /// In bytes; applied only if the machine supports it.
    pub memory: u64,
    /// Limit for processes and threads together; applied only if the machine supports it.
    pub processes: u32,
    /// As detected on the machine that planned the run.
    pub confinement: Confinement,
}

/// The coding agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPlan {
    /// As in `config/agents.toml`.
    pub name: String,
    /// `None` means that the agent chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Kind of the credential, such as `oauth`; `None` if no credential is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The store or the environment variable that contained the credential when the run was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The command that stores a new credential of that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<String>,
    /// The provider-side tools that its model requests may use.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub provider_tools: BTreeSet<ProviderTool>,
    /// Its definition in `agents.toml` with all inherited values. Plans of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<serde_json::Value>,
    /// The agent that replaces this one when the run circles or this one's provider is not usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<AgentPlan>>,
}

impl AgentPlan {
    /// Returns the agent and its model in the syntax of `agent_fallback`.
    pub fn label(&self) -> String {
        match &self.model {
            Some(model) => format!("{}:{model}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The configuration that a run was planned with. A resumed run uses it from any directory, and
/// whatever the files contain by then.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PinnedSettings {
    /// The directory whose configuration and `.env` were read.
    pub directory: String,
    /// The profiles that the run can switch to, with absolute paths and the prices at that time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, ModelChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doctor_profile: Option<String>,
    /// The profile to switch to if the task names no `model_profile_fallback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_profile: Option<String>,
    pub outage: OutagePolicy,
    /// The author of the commits. Plans of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<GitIdentity>,
    /// The timeout of one command, in minutes. Plans of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_timeout_minutes: Option<u32>,
    /// Whether the run's files are saved under `refs/ralph/<task_id>`; `None` means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_ref: Option<bool>,
    /// The settings of publishing without those of the task. Plans of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<PublishPolicy>,
}

/// The author and committer of commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitIdentity {
    #[serde(deserialize_with = "deserialize_identity_part")]
    pub name: String,
    #[serde(deserialize_with = "deserialize_identity_part")]
    pub email: String,
}

impl Default for GitIdentity {
    fn default() -> Self {
        Self {
            name: "ralph".into(),
            email: "ralph@localhost".into(),
        }
    }
}

/// Rejects names and addresses that git would reject or change.
fn deserialize_identity_part<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let has_text = text.chars().any(char::is_alphanumeric);
    if !has_text || text.trim() != text {
        return Err(serde::de::Error::custom(
            "the author of commits needs a letter or digit, and no spaces around it",
        ));
    }
    if text.chars().any(|c| c.is_control() || c == '<' || c == '>') {
        return Err(serde::de::Error::custom(
            "the author of commits cannot contain `<`, `>` or a control character",
        ));
    }
    Ok(text)
}

/// The network access of a run's commands. The gate is the only way out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPlan {
    pub policy: EgressPolicy,
    /// The hosts for which the gate terminates TLS.
    #[serde(default)]
    pub inspect: Allowlist,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_requests_per_minute: Option<u32>,
    /// Hosts named by the project's files. Only the user can allow them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<SuggestedHost>,
}

impl NetworkPlan {
    /// Returns the allowed hosts for which the gate does not terminate TLS. The gate cannot see a
    /// credential that a command sends there. With `allow-all`, a single entry describes all hosts.
    pub fn uninspected(&self) -> Vec<String> {
        match &self.policy {
            EgressPolicy::Deny => Vec::new(),
            EgressPolicy::Allowlist(list) => list
                .entries()
                .iter()
                .filter(|entry| !self.inspect.covers_tls_of(entry))
                .map(ToString::to_string)
                .collect(),
            EgressPolicy::AllowAll if self.inspect.entries().is_empty() => {
                vec!["every host".to_owned()]
            }
            EgressPolicy::AllowAll => {
                let inspected: Vec<_> = self
                    .inspect
                    .entries()
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                vec![format!("every host but {}", inspected.join(", "))]
            }
        }
    }
}

/// A host that a project file names and that commands may not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuggestedHost {
    /// In allowlist syntax.
    pub host: String,
    pub file: String,
    /// The kind of file.
    pub why: String,
}

/// The source of a run's set-up command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupSource {
    /// The front matter of the task file.
    Task,
    /// `[sandbox]` of `ralph.toml`.
    Settings,
    /// `.agent-loop/config.json`.
    AgentLoop,
}

/// How the dependencies of a project are installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupPlan {
    /// For `sh -c` in the root of the repository.
    pub command: String,
    pub source: SetupSource,
    /// The lockfiles and manifests at the base commit. Set-up runs again when one of them changes.
    pub files: Vec<String>,
    /// The registries that are reachable during set-up; empty if the sandbox has no gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<EcosystemRegistries>,
}

impl SetupPlan {
    /// Returns the hosts that are reachable during set-up, in allowlist syntax.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let registries = self.registries.iter();
        registries.flat_map(|registries| registries.hosts.iter().map(|host| host.host.as_str()))
    }
}

/// The registries of an ecosystem that the project uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EcosystemRegistries {
    pub ecosystem: PackageEcosystem,
    /// Empty if this machine's configuration names none.
    pub hosts: Vec<RegistryHost>,
}

/// A registry, and the setting that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryHost {
    /// In allowlist syntax.
    pub host: String,
    /// A key of `ralph.toml`, a variable of the environment or a file.
    pub source: String,
}

/// The plan of one run. It is the first record of the journal and never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    pub run: RunId,
    pub task_id: TaskId,
    pub title: String,
    /// Path on the host.
    pub task_file: String,
    /// Digest of the task file with all boxes open: front matter, body and verify commands.
    pub contract: Digest,
    /// The repository, as git on the host reaches it.
    pub repo: String,
    /// The branch that the work starts from and is merged into.
    pub base_branch: String,
    /// The commit that the work starts from.
    pub base: CommitId,
    /// The branch to deliver.
    pub branch: String,
    pub engine: EngineKind,
    /// Name of the sandbox provider.
    pub sandbox: String,
    pub isolation: Isolation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalPlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// `None` if the sandbox has no gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPlan>,
    /// Such as `scripted:/path/replies.jsonl`, or `agent:claude` if an agent calls its own model.
    pub model: String,
    /// The store or the environment variable that contained the model's key when the run was planned;
    /// `None` for a model without a key and for an agent, whose plan names its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentPlan>,
    /// Name of the source host.
    pub scm: String,
    /// The kind and the source of the credential for the source host when the run was planned; `None`
    /// for a repository on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scm_credential: Option<String>,
    /// The submodules at the base commit that commands may read from the source host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Submodule>,
    pub delivery: Delivery,
    pub limits: BudgetLimits,
    /// `None` if there is nothing to install.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupPlan>,
    /// The command that must succeed.
    pub test_command: String,
    pub checkboxes: usize,
    #[serde(default)]
    pub mode: RunMode,
    /// Plans of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PinnedSettings>,
    /// The issue that the run works on. The pull request closes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<IssuePlan>,
}

/// The issue of a run. The run's file `spec.md` contains its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuePlan {
    pub number: u64,
    pub url: String,
    /// The steps that are boxes of the task, by number: `3` or `3.1`.
    pub steps: Vec<String>,
}

impl RunPlan {
    /// Returns the number of the issue that the run works on.
    pub fn issue_number(&self) -> Option<u64> {
        self.issue.as_ref().map(|issue| issue.number)
    }

    /// Returns the repository on a source host; `None` for a repository on this machine.
    pub fn remote_repository(&self) -> Option<RemoteRepo> {
        remote_repository(&self.repo)
    }
}

/// Returns the repository on a source host that the `repo` of a plan names. The path of a repository on
/// this machine is absolute.
pub fn remote_repository(repo: &str) -> Option<RemoteRepo> {
    if !repo.starts_with("https://") {
        return None;
    }
    match RepoAddress::parse(repo) {
        Ok(RepoAddress::Remote(repo)) => Some(repo),
        Ok(RepoAddress::Path(_)) | Err(_) => None,
    }
}
