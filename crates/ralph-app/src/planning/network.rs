//! The hosts that a run's commands may reach, and the hosts that the project's files name.

use std::path::Path;

use ralph_core::id::CommitId;
use ralph_core::net::suggest::{self, HostSuggestion};
use ralph_core::net::{Allowlist, AllowlistEntryError, EgressPolicy, EgressRules, Endpoint};
use ralph_core::parse_value;
use ralph_core::plan::{AgentPlan, NetworkPlan, SuggestedHost};
use ralph_engine::git::HostGit;

use super::source_repository::SourceRepository;
use crate::agent::AgentAccess;
use crate::app::App;
use crate::config::{self, NetworkSettings};
use crate::error::AppError;
use crate::planning::RunRequest;

/// The number of files that are searched for hosts, and the number of hosts that are reported.
const MAX_FILES: usize = 64;
const MAX_HOSTS: usize = 64;

/// Returns the hosts that the settings allow, and those that the agent needs.
pub(crate) fn network_plan(
    settings: &NetworkSettings,
    agent: &[String],
) -> Result<NetworkPlan, AppError> {
    let list = |lines: &[String]| Allowlist::parse(lines.iter().map(String::as_str));
    let invalid_list = |key: &str, error: &AllowlistEntryError| {
        AppError::usage(
            "cannot configure the network of the sandbox",
            error.to_string(),
            format!("correct `{key}`"),
        )
    };
    let invalid_allowed =
        |error: AllowlistEntryError| invalid_list("allowed` below `[sandbox.network]", &error);
    let agent_hosts = list(agent).map_err(|error| invalid_list("hosts` of the agent", &error))?;
    // Validated with every policy, because the policy may change.
    let listed = list(&settings.allowed).map_err(invalid_allowed)?;
    let policy = match settings.policy {
        config::NetworkPolicySetting::AllowAll => EgressPolicy::AllowAll,
        config::NetworkPolicySetting::Deny if agent_hosts.entries().is_empty() => {
            EgressPolicy::Deny
        }
        config::NetworkPolicySetting::Deny => EgressPolicy::Allowlist(agent_hosts),
        config::NetworkPolicySetting::Allowlist => {
            let mut allowed = listed;
            for entry in agent_hosts.entries() {
                allowed.add(entry.clone());
            }
            EgressPolicy::Allowlist(allowed)
        }
    };
    let inspect = list(&settings.inspect)
        .map_err(|error| invalid_list("inspect` below `[sandbox.network]", &error))?;
    let per_minute = settings.model_requests_per_minute;
    Ok(NetworkPlan {
        policy,
        inspect,
        model_requests_per_minute: (per_minute > 0).then_some(per_minute),
        suggested: Vec::new(),
    })
}

/// Returns the agent plan of a run, with the provider-side tools that the settings allow.
pub(crate) fn agent_plan(
    access: Option<&AgentAccess>,
    request: &RunRequest,
    app: &App,
) -> Result<Option<AgentPlan>, AppError> {
    let allowed = app.settings()?.sandbox.network.provider_tools;
    let plan = access.map(|access| access.to_plan(request.model.as_ref(), &allowed));
    plan.transpose()
}

/// Describes the hosts that commands can reach.
pub fn network_summary(network: &NetworkPlan) -> String {
    match &network.policy {
        EgressPolicy::Deny => "nothing".into(),
        EgressPolicy::AllowAll => "every public host".into(),
        EgressPolicy::Allowlist(list) if list.entries().is_empty() => "nothing".into(),
        EgressPolicy::Allowlist(list) => {
            let hosts: Vec<String> = list.entries().iter().map(ToString::to_string).collect();
            hosts.join(", ")
        }
    }
}

/// Returns a notice if hosts are listed without effect.
pub(crate) fn unused_list_notice(settings: &NetworkSettings) -> Option<String> {
    let is_idle =
        settings.policy == config::NetworkPolicySetting::Deny && !settings.allowed.is_empty();
    is_idle.then(|| {
        "`allowed` has no effect with the policy `deny`: set `policy = \"allowlist\"`".to_owned()
    })
}

/// Returns the network plan of a run whose sandbox has a gate, and a notice for the user.
pub(crate) async fn plan_for_run(
    sandbox: &str,
    access: Option<&AgentAccess>,
    source: &SourceRepository,
    git: &HostGit,
    app: &App,
) -> Result<Option<(NetworkPlan, Option<String>)>, AppError> {
    if sandbox != "docker" {
        return Ok(None);
    }
    let hosts = access.map_or_else(Vec::new, AgentAccess::hosts);
    let settings = app.settings()?.sandbox.network;
    let mut plan = network_plan(&settings, &hosts)?;
    plan.suggested = suggest_hosts(&plan.policy, &source.path, &source.base, git).await;
    Ok(Some((plan, unused_list_notice(&settings))))
}

/// Returns the unreachable hosts that files of the project name at a commit. They are only
/// suggestions, so a file that cannot be read is logged and left out.
pub(crate) async fn suggest_hosts(
    policy: &EgressPolicy,
    repository: &Path,
    commit: &CommitId,
    git: &HostGit,
) -> Vec<SuggestedHost> {
    let rules = EgressRules::new(policy.clone());
    let mut found: Vec<SuggestedHost> = Vec::new();
    for path in files_with_hosts(repository, commit, git).await {
        let object = format!("{commit}:{path}");
        let arguments = ["cat-file", "blob", object.as_str()];
        let text = match git.run_as_user(repository, &arguments).await {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(%error, "cannot search `{path}` for hosts");
                continue;
            }
        };
        for suggestion in suggest::suggest(&path, text.as_bytes()) {
            let HostSuggestion {
                host, port, path, ..
            } = &suggestion;
            let endpoint = Endpoint {
                host: host.clone(),
                port: port.unwrap_or(443),
            };
            let entry = port.map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
            let is_known = found.iter().any(|other| other.host == entry);
            if !is_known && !rules.decide(&endpoint).is_allowed() && found.len() < MAX_HOSTS {
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

async fn files_with_hosts(repository: &Path, commit: &CommitId, git: &HostGit) -> Vec<String> {
    let tree = commit.to_string();
    let arguments = ["ls-tree", "-r", "-l", "-z", "--full-tree", tree.as_str()];
    let listed = match git.run_as_user(repository, &arguments).await {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(%error, "cannot list the files of `{}`", repository.display());
            return Vec::new();
        }
    };
    let read = |entry: &str| {
        let (meta, path) = entry.split_once('\t')?;
        // A submodule has `-` instead of a size.
        let size: usize = parse_value(meta.split_whitespace().last()?)?;
        (suggest::is_host_file(path) && size <= suggest::MAX_BYTES).then(|| path.to_owned())
    };
    listed
        .split('\0')
        .filter_map(read)
        .take(MAX_FILES)
        .collect()
}
