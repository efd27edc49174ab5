//! What the commands of a run may reach, and which hosts the project's own files name.

use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::net::suggest::{self, Suggestion};
use ralph_core::net::{Allowlist, Endpoint, EntryError, Policy, Rules};
use ralph_core::plan::{AgentPlan, NetworkPlan, SuggestedHost};
use ralph_engine::git::HostGit;

use super::agent::Access;
use super::args::RunArgs;
use super::context::Context;
use super::error::CliError;
use super::planning::Source;
use crate::config::{self, NetworkSettings};

/// How many files are read for hosts, and how many hosts are told.
const MOST_FILES: usize = 64;
const MOST_HOSTS: usize = 64;

/// Returns what the settings allow, and what the agent itself has to reach.
pub(super) fn plan(settings: &NetworkSettings, agent: &[String]) -> Result<NetworkPlan, CliError> {
    let list = |lines: &[String]| Allowlist::parse(lines.iter().map(String::as_str));
    let unusable = |key: &str, error: &EntryError| {
        CliError::usage(
            "the network of the sandbox cannot be set up",
            error.to_string(),
            format!("correct `{key}`"),
        )
    };
    let refused = |error: EntryError| unusable("allowed` below `[sandbox.network]", &error);
    let own = list(agent).map_err(|error| unusable("hosts` of the agent", &error))?;
    // Looked at whatever the rule is: it may change.
    let listed = list(&settings.allowed).map_err(refused)?;
    let policy = match settings.policy {
        config::Policy::AllowAll => Policy::AllowAll,
        config::Policy::Deny if own.entries().is_empty() => Policy::Deny,
        config::Policy::Deny => Policy::Allowlist(own),
        config::Policy::Allowlist => {
            let mut allowed = listed;
            for entry in own.entries() {
                allowed.add(entry.clone());
            }
            Policy::Allowlist(allowed)
        }
    };
    let inspect = list(&settings.inspect)
        .map_err(|error| unusable("inspect` below `[sandbox.network]", &error))?;
    let most = settings.model_requests_per_minute;
    Ok(NetworkPlan {
        policy,
        inspect,
        model_requests_per_minute: (most > 0).then_some(most),
        suggested: Vec::new(),
    })
}

/// Returns the agent of a run, with the provider-side tools that the settings allow it.
pub(super) fn agent_plan(
    access: Option<&Access>,
    args: &RunArgs,
    context: &Context,
) -> Result<Option<AgentPlan>, CliError> {
    let allowed = context.settings()?.sandbox.network.provider_tools;
    Ok(access.map(|access| access.plan(args.model.as_ref(), &allowed)))
}

/// Says that hosts are listed in vain, where they are.
pub(super) fn idle_list(settings: &NetworkSettings) -> Option<String> {
    let is_idle = settings.policy == config::Policy::Deny && !settings.allowed.is_empty();
    is_idle.then(|| {
        "`allowed` has no effect with the policy `deny`: set `policy = \"allowlist\"`".to_owned()
    })
}

/// Returns what the commands of a run may reach, where the sandbox has a gate, and what a person should
/// know about it.
pub(super) async fn of_run(
    sandbox: &str,
    access: Option<&Access>,
    source: &Source,
    git: &HostGit,
    context: &Context,
) -> Result<Option<(NetworkPlan, Option<String>)>, CliError> {
    if sandbox != "docker" {
        return Ok(None);
    }
    let hosts = access.map(|access| access.preset.hosts.as_slice());
    let settings = context.settings()?.sandbox.network;
    let mut plan = plan(&settings, hosts.unwrap_or_default())?;
    plan.suggested = suggested(&plan.policy, &source.path, &source.base, git).await;
    Ok(Some((plan, idle_list(&settings))))
}

/// Returns the hosts that files of the project name at a commit, and that may not be reached. A project
/// that cannot be read suggests nothing.
async fn suggested(
    policy: &Policy,
    repository: &Path,
    commit: &CommitId,
    git: &HostGit,
) -> Vec<SuggestedHost> {
    let rules = Rules::new(policy.clone());
    let mut found: Vec<SuggestedHost> = Vec::new();
    for path in files(repository, commit, git).await {
        let object = format!("{commit}:{path}");
        let arguments = ["cat-file", "blob", object.as_str()];
        let text = git.run_in(repository, &arguments).await;
        let text = text.unwrap_or_default();
        for suggestion in suggest::suggest(&path, text.as_bytes()) {
            let Suggestion {
                host, port, path, ..
            } = &suggestion;
            let endpoint = Endpoint {
                host: host.clone(),
                port: port.unwrap_or(443),
            };
            let entry = port.map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
            let is_known = found.iter().any(|other| other.host == entry);
            if !is_known && !rules.decide(&endpoint).is_allowed() && found.len() < MOST_HOSTS {
                found.push(SuggestedHost {
                    host: entry,
                    file: path.clone(),
                    why: suggestion.reason.to_owned(),
                });
            }
        }
    }
    found
}

async fn files(repository: &Path, commit: &CommitId, git: &HostGit) -> Vec<String> {
    let tree = commit.to_string();
    let arguments = ["ls-tree", "-r", "-l", "-z", "--full-tree", tree.as_str()];
    let listed = git.run_in(repository, &arguments).await;
    let listed = listed.unwrap_or_default();
    let read = |entry: &str| {
        let (meta, path) = entry.split_once('\t')?;
        let size: usize = meta.split_whitespace().last()?.parse().ok()?;
        (suggest::is_read(path) && size <= suggest::MAX_BYTES).then(|| path.to_owned())
    };
    listed
        .split('\0')
        .filter_map(read)
        .take(MOST_FILES)
        .collect()
}
