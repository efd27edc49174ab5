//! What a run will do, complete before the first sandbox exists. `ralph run --dry-run` prints it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::budget::BudgetLimits;
use crate::id::{CommitId, Digest, RunId, TaskId};
use crate::net::{Allowlist, EgressPolicy, ProviderTool};
use crate::ports::{Confinement, Isolation};
use crate::task::RunMode;

/// Who does the work in an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// The model answers with actions and ralph performs them.
    #[default]
    Actions,
    /// A coding agent's program works inside the sandbox.
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

/// What the containers of a run are like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerPlan {
    /// The engine, as `DOCKER_HOST` writes it; none means the default one of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The image.
    pub image: String,
    /// Thousandths of a processor; none means as many as are usual and there are.
    pub millicpus: Option<u32>,
    /// Bytes of memory; none means as much as is usual and there is.
    pub memory: Option<u64>,
    /// Bytes that the workspace may hold.
    pub disk: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Whether everything but the workspace and the temporary directories is read-only.
    pub read_only: bool,
}

/// What the commands of a local sandbox may use, and what this machine keeps from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalPlan {
    /// Bytes of memory, where they can be limited.
    pub memory: u64,
    /// Processes and threads, where they can be limited.
    pub processes: u32,
    /// What holds on the machine that the run was planned on.
    pub confinement: Confinement,
}

/// The coding agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPlan {
    /// Its name, as in `config/agents.toml`.
    pub name: String,
    /// The model that it is told to use; none means that it chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How its credential is shown to the provider, such as `oauth`; none if it needs no credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The command that stores another credential of that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<String>,
    /// The work outside of the sandbox that its requests may ask the model provider for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub provider_tools: BTreeSet<ProviderTool>,
}

/// What the commands of a run may reach, through the gate and in no other way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPlan {
    /// The rule.
    pub policy: EgressPolicy,
    /// The hosts whose TLS the gate opens.
    #[serde(default)]
    pub inspect: Allowlist,
    /// How many requests to models a minute may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_requests_per_minute: Option<u32>,
    /// Hosts that the project's own files name. Nothing allows them but a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggested: Vec<SuggestedHost>,
}

impl NetworkPlan {
    /// Returns the allowed hosts whose TLS the gate does not open. A command can use a credential of its
    /// own there, and the gate does not see it. With `allow-all` the text stands for all of them.
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

/// A host that a file of the project names, and that commands may not reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedHost {
    /// The host, as an allowlist has it.
    pub host: String,
    /// The file that names it.
    pub file: String,
    /// What that file is.
    pub why: String,
}

/// The plan of one run. It is the first record of the journal and never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The run.
    pub run: RunId,
    /// The task it works on.
    pub task_id: TaskId,
    /// The task's title.
    pub title: String,
    /// The task file on the host.
    pub task_file: String,
    /// The task file's digest with all boxes open: front matter, body and verify commands.
    pub contract: Digest,
    /// The repository, as git reaches it from the host.
    pub repo: String,
    /// The branch the work starts from and goes back to.
    pub base_branch: String,
    /// The commit the work starts from.
    pub base: CommitId,
    /// The branch that is delivered.
    pub branch: String,
    /// Who does the work.
    pub engine: EngineKind,
    /// The sandbox provider.
    pub sandbox: String,
    /// How well that provider isolates.
    pub isolation: Isolation,
    /// What commands of a local sandbox may use and what is kept from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalPlan>,
    /// What the containers of the sandbox are like, where it has containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerPlan>,
    /// What commands may reach, where the sandbox has a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPlan>,
    /// The model, such as `scripted:/path/replies.jsonl`, or `agent:claude` where an agent asks its own.
    pub model: String,
    /// The agent, where one does the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentPlan>,
    /// The source host.
    pub scm: String,
    /// What is delivered.
    pub delivery: Delivery,
    /// What it may spend.
    pub limits: BudgetLimits,
    /// The command that must be green.
    pub test_command: String,
    /// How many checkboxes there are.
    pub checkboxes: usize,
    /// How far people may step in.
    #[serde(default)]
    pub mode: RunMode,
}
