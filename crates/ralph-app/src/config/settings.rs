//! `ralph.toml`: the settings of a project.

use std::collections::BTreeMap;
use std::path::Path;

use ralph_core::ecosystem::{MAX_DEPENDENCY_FILES, PackageEcosystem};
use ralph_core::net::{Allowlist, ProviderTool};
use ralph_core::outage::OutagePolicy;
use ralph_core::path::WorkspacePath;
use ralph_core::plan::GitIdentity;
use ralph_core::task::{AgentChoice, BranchName};
use ralph_guest::available;
use serde::{Deserialize, Deserializer, Serialize};

use super::error::ConfigFileError;
use super::issue_settings::IssueSettings;
use super::notify_settings::NotifySettings;
use super::publish_settings::{CiSettings, OverlapSettings, ReviewSettings};
use super::values::{Cpus, Memory, TimeSpan, deserialize_nonzero_span};
use crate::tokens::BaseUrl;

/// The default settings file, with comments.
pub const DEFAULT_FILE: &str = include_str!("ralph.toml");

/// The largest timeout of one command: a day.
const MAX_TIMEOUT_MINUTES: u32 = 24 * 60;

/// The most `*` of a branch pattern.
const MAX_WILDCARDS: usize = 3;

/// The complete settings of a project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub sandbox: SandboxSettings,
    pub agent: AgentSettings,
    pub model: ModelSettings,
    pub git: GitSettings,
    pub github: GitHubSettings,
    pub ci: CiSettings,
    pub reviews: ReviewSettings,
    pub overlap: OverlapSettings,
    pub issues: IssueSettings,
    pub monitoring: MonitoringSettings,
    pub notify: NotifySettings,
}

/// `[sandbox]`: the sandbox of a run's commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// Whether commands are isolated from the machine; if not, the provider is `local`.
    pub enabled: bool,
    /// The provider, unless a flag, the environment or the task names one.
    pub provider: String,
    /// The image of container sandboxes; `auto` selects the agent's image.
    pub image: String,
    /// The base of the agents' images; empty selects the one in their Dockerfiles.
    pub base_image: String,
    /// Whether one container serves all iterations of a run; `false` is rejected.
    #[serde(deserialize_with = "deserialize_reuse")]
    pub reuse_container: bool,
    /// Whether an image that exists locally is not pulled again.
    pub use_local_image: bool,
    /// The command that installs the dependencies; empty means none.
    pub setup_command: String,
    /// The files whose content decides whether set-up runs again; empty means that they are found.
    #[serde(deserialize_with = "deserialize_lockfiles")]
    pub lockfiles: Vec<String>,
    /// The registries that are reachable during set-up, by ecosystem.
    #[serde(deserialize_with = "deserialize_registries")]
    pub registries: BTreeMap<PackageEcosystem, Vec<String>>,
    pub network: NetworkSettings,
    pub resources: ResourceSettings,
    pub docker: DockerEngineSettings,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            provider: "local".into(),
            image: "auto".into(),
            base_image: String::new(),
            reuse_container: true,
            use_local_image: true,
            setup_command: String::new(),
            lockfiles: Vec::new(),
            registries: BTreeMap::new(),
            network: NetworkSettings::default(),
            resources: ResourceSettings::default(),
            docker: DockerEngineSettings::default(),
        }
    }
}

/// `[sandbox.docker]`: settings of Docker sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DockerEngineSettings {
    /// Engines in the format of `DOCKER_HOST`; the first that answers is used.
    pub hosts: Vec<String>,
    /// Whether only the workspace and the temporary directories are writable.
    pub read_only: bool,
}

impl Default for DockerEngineSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            read_only: true,
        }
    }
}

/// `[sandbox.network]`: the hosts that commands can reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    pub policy: NetworkPolicySetting,
    /// The hosts that the policy `allowlist` allows.
    pub allowed: Vec<String>,
    /// The hosts whose TLS traffic is decrypted.
    pub inspect: Vec<String>,
    /// The limit of model requests per minute; 0 means no limit.
    pub model_requests_per_minute: u32,
    /// The tools outside the sandbox that model requests may ask the provider for.
    pub provider_tools: Vec<ProviderTool>,
}

/// A network policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkPolicySetting {
    /// No host is reachable.
    #[default]
    Deny,
    /// The listed hosts are reachable.
    Allowlist,
    /// Every public host is reachable on the ports 80 and 443.
    AllowAll,
}

/// `[sandbox.resources]`: the resource limits of commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceSettings {
    pub memory: Memory,
    pub cpus: Cpus,
    /// The size limit of the workspace.
    pub disk: Memory,
    /// The limit of processes and threads.
    pub processes: u32,
    /// The longest time of one command.
    #[serde(deserialize_with = "deserialize_timeout")]
    pub timeout_minutes: u32,
}

impl Default for ResourceSettings {
    fn default() -> Self {
        Self {
            memory: Memory::from_gibibytes(8),
            cpus: Cpus::from_whole(4),
            disk: Memory::from_gibibytes(20),
            processes: 512,
            timeout_minutes: 60,
        }
    }
}

/// `[agent]`: settings of coding agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// The agent, and its model, that replaces the agent of a task without `agent_fallback`; empty
    /// means none.
    #[serde(deserialize_with = "deserialize_agent_fallback")]
    pub fallback: String,
}

impl AgentSettings {
    /// Returns the agent that replaces the agent of a task without `agent_fallback`.
    pub fn fallback(&self) -> Option<AgentChoice> {
        available(AgentChoice::parse(&self.fallback))
    }
}

fn deserialize_agent_fallback<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !text.is_empty() {
        AgentChoice::parse(&text).map_err(|why| {
            serde::de::Error::custom(format!("`fallback` {why}: {}", AgentChoice::EXAMPLE))
        })?;
    }
    Ok(text)
}

/// `[model]`: settings of model requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// How long a run waits for an unavailable provider.
    pub max_outage: TimeSpan,
    /// The delay before the first retry; it doubles with each further retry.
    #[serde(deserialize_with = "deserialize_nonzero_span")]
    pub retry_delay: TimeSpan,
    /// The limit of the doubled delay.
    #[serde(deserialize_with = "deserialize_nonzero_span")]
    pub longest_retry_delay: TimeSpan,
}

impl Default for ModelSettings {
    fn default() -> Self {
        let policy = OutagePolicy::default();
        Self {
            max_outage: TimeSpan::new(policy.max_outage),
            retry_delay: TimeSpan::new(policy.first_delay),
            longest_retry_delay: TimeSpan::new(policy.longest_delay),
        }
    }
}

impl ModelSettings {
    /// Returns how a run waits for an unavailable provider.
    pub fn outage_policy(&self) -> OutagePolicy {
        OutagePolicy {
            first_delay: self.retry_delay.duration(),
            longest_delay: self.longest_retry_delay.duration(),
            max_outage: self.max_outage.duration(),
        }
    }
}

/// `[git]`: settings of commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitSettings {
    /// Branches that no run delivers; `*` stands for any text.
    #[serde(deserialize_with = "deserialize_branch_patterns")]
    pub protected_branches: Vec<String>,
    /// Whether the files of a run are saved under `refs/ralph/<task_id>`.
    pub state_ref: bool,
    /// The author of the commits.
    pub worktree: GitIdentity,
}

impl Default for GitSettings {
    fn default() -> Self {
        Self {
            protected_branches: ["main", "master", "production"].map(String::from).into(),
            state_ref: true,
            worktree: GitIdentity::default(),
        }
    }
}

impl GitSettings {
    /// Returns the protected name or pattern that a branch matches.
    pub fn protecting(&self, branch: &str) -> Option<&str> {
        let mut patterns = self.protected_branches.iter().map(String::as_str);
        patterns.find(|pattern| matches_pattern(pattern, branch))
    }
}

/// Returns whether a name matches a pattern in which `*` stands for any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    let mut ends = name.char_indices().map(|(end, _)| end).chain([name.len()]);
    ends.any(|end| matches_pattern(rest, &name[end..]))
}

fn deserialize_branch_patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(deserializer)?;
    for pattern in &patterns {
        let is_bounded = pattern.matches('*').count() <= MAX_WILDCARDS;
        let example = pattern.replace('*', "x");
        BranchName::parse(&example)
            .and_then(|_| {
                is_bounded
                    .then_some(())
                    .ok_or("has too many `*`".to_owned())
            })
            .map_err(|why| serde::de::Error::custom(format!("branch `{pattern}` {why}")))?;
    }
    Ok(patterns)
}

fn deserialize_reuse<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    if bool::deserialize(deserializer)? {
        return Ok(true);
    }
    Err(serde::de::Error::custom(
        "`false` is not supported: one container serves all iterations of a run; remove the line",
    ))
}

fn deserialize_lockfiles<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let paths = Vec::<String>::deserialize(deserializer)?;
    if paths.len() > MAX_DEPENDENCY_FILES {
        let why = format!("more than {MAX_DEPENDENCY_FILES} lockfiles");
        return Err(serde::de::Error::custom(why));
    }
    let parse = |path: &String| {
        let parsed = WorkspacePath::parse(path).map_err(serde::de::Error::custom)?;
        Ok(parsed.as_str().to_owned())
    };
    paths.iter().map(parse).collect()
}

fn deserialize_registries<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<PackageEcosystem, Vec<String>>, D::Error> {
    let registries = BTreeMap::<PackageEcosystem, Vec<String>>::deserialize(deserializer)?;
    for hosts in registries.values() {
        Allowlist::parse(hosts.iter().map(String::as_str)).map_err(serde::de::Error::custom)?;
    }
    Ok(registries)
}

fn deserialize_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let minutes = u32::deserialize(deserializer)?;
    if (1..=MAX_TIMEOUT_MINUTES).contains(&minutes) {
        return Ok(minutes);
    }
    Err(serde::de::Error::custom(format!(
        "the timeout must be between 1 and {MAX_TIMEOUT_MINUTES} minutes"
    )))
}

/// `[github]`: the API of GitHub. Only the user's file may set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitHubSettings {
    /// The address of the API; empty selects the one of the repository's host.
    #[serde(deserialize_with = "deserialize_api_url")]
    pub api_url: String,
}

fn deserialize_api_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !text.is_empty() {
        BaseUrl::parse(&text).map_err(serde::de::Error::custom)?;
    }
    Ok(text)
}

/// `[monitoring]`: settings of the display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MonitoringSettings {
    /// Whether a terminal shows a spinner.
    pub show_progress: bool,
}

impl Default for MonitoringSettings {
    fn default() -> Self {
        Self {
            show_progress: true,
        }
    }
}

impl Settings {
    /// The name of the file.
    pub const FILE: &'static str = "ralph.toml";

    /// Parses the text of a `ralph.toml`. Missing keys have their default.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigFileError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            ConfigFileError::invalid_at(path, text, offset, error.message().replace('\n', ", "))
        })
    }

    /// Returns the sandbox provider of these settings.
    pub fn sandbox_provider(&self) -> &str {
        if self.sandbox.enabled {
            &self.sandbox.provider
        } else {
            "local"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(Path::new("ralph.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_commented_file_lists_exactly_the_defaults() {
        assert_eq!(parse(DEFAULT_FILE), Ok(Settings::default()));
        let keys = |settings: &Settings| {
            let table = toml::Table::try_from(settings).unwrap();
            let mut names = Vec::new();
            collect(&table, "", &mut names);
            names
        };
        let written: toml::Table = DEFAULT_FILE.parse().unwrap();
        let mut names = Vec::new();
        collect(&written, "", &mut names);
        assert_eq!(
            names,
            keys(&Settings::default()),
            "a key is not in the file"
        );
    }

    fn collect(table: &toml::Table, prefix: &str, names: &mut Vec<String>) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.as_str());
        for (key, value) in entries {
            match value.as_table() {
                Some(inner) => collect(inner, &format!("{prefix}{key}."), names),
                None => names.push(format!("{prefix}{key}")),
            }
        }
    }

    #[test]
    fn a_protected_branch_is_a_name_or_a_pattern() {
        let git = GitSettings {
            protected_branches: ["main", "release/*", "*-stable"].map(String::from).into(),
            state_ref: true,
            worktree: GitIdentity::default(),
        };
        for (branch, pattern) in [
            ("main", Some("main")),
            ("release/1/2", Some("release/*")),
            ("v1-stable", Some("*-stable")),
            ("main2", None),
            ("ralph/main", None),
            ("release", None),
        ] {
            assert_eq!(git.protecting(branch), pattern, "{branch}");
        }
    }

    #[test]
    fn unset_values_have_defaults() {
        let settings = parse(
            "[sandbox]\nprovider = \"docker\"\n[sandbox.network]\npolicy = \"allowlist\"\n\
             allowed = [\"github.com\"]\n[sandbox.resources]\nmemory = \"2g\"\ncpus = 1.5\n",
        )
        .unwrap();
        let mut expected = Settings::default();
        expected.sandbox.provider = "docker".into();
        expected.sandbox.network.policy = NetworkPolicySetting::Allowlist;
        expected.sandbox.network.allowed = vec!["github.com".into()];
        expected.sandbox.resources.memory = Memory::from_gibibytes(2);
        assert_eq!(settings.sandbox.resources.cpus.count().to_string(), "1.5");
        expected.sandbox.resources.cpus = settings.sandbox.resources.cpus;
        assert_eq!(settings, expected);
        assert_eq!(settings.sandbox_provider(), "docker");
        let off = parse("[sandbox]\nenabled = false\nprovider = \"docker\"").unwrap();
        assert_eq!(off.sandbox_provider(), "local");
    }

    #[test]
    fn values_that_cannot_take_effect_are_errors() {
        for (text, expected) in [
            (
                "[notify]\non = [\"always\"]\n",
                "`ralph.toml` line 2, column 7: unknown variant `always`, expected one of `finished`, `failed`, `needs-you`",
            ),
            (
                "[issues]\nauthors = []\n",
                "`ralph.toml` line 2, column 11: list 1 to 100 authors, such as `[\"@me\"]`",
            ),
            (
                "[issues]\nauthors = [\"a b\"]\n",
                "`ralph.toml` line 2, column 11: `a b` is not a login; write it like `octocat`, `bot[bot]` or `@me`",
            ),
            (
                "[issues]\nworkers = 17\n",
                "`ralph.toml` line 2, column 11: the number of workers must be between 1 and 16",
            ),
            (
                "[issues]\nmax_cost_usd_estimate = 0\n",
                "`ralph.toml` line 2, column 25: the limit must be more than 0 dollars",
            ),
            (
                "[issues]\nlabels = { ready = \"spec\" }\n",
                "`ralph.toml` line 2, column 10: two labels have the name `spec`",
            ),
            (
                "[notify]\ncommand = [\"\"]\n",
                "`ralph.toml` line 2, column 11: the program of the command is empty",
            ),
            (
                "[notify]\nwebhook = \"http://example.com/x\"\n",
                "`ralph.toml` line 2, column 11: a webhook with `http` must be on this machine; use `https`",
            ),
            (
                "[sandbox]\nreuse_container = false\n",
                "`ralph.toml` line 2, column 19: `false` is not supported: one container serves all iterations of a run; remove the line",
            ),
            (
                "[sandbox.resources]\ntimeout_minutes = 0\n",
                "`ralph.toml` line 2, column 19: the timeout must be between 1 and 1440 minutes",
            ),
            (
                "[git]\nprotected_branches = [\"a b\"]\n",
                "`ralph.toml` line 2, column 22: branch `a b` contains a space, which git does not allow",
            ),
            (
                "[git.worktree]\nname = \"<x>\"\n",
                "`ralph.toml` line 2, column 8: the author of commits cannot contain `<`, `>` or a control character",
            ),
            (
                "[git.worktree]\nemail = \"\"\n",
                "`ralph.toml` line 2, column 9: the author of commits needs a letter or digit, and no spaces around it",
            ),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()));
        }
    }

    #[test]
    fn what_has_no_meaning_is_an_error_with_its_place() {
        for (text, expected) in [
            (
                "[sandbx]\n",
                "`ralph.toml` line 1, column 2: unknown field `sandbx`, expected one of `sandbox`, `agent`, `model`, `git`, `github`, `ci`, `reviews`, `overlap`, `issues`, `monitoring`, `notify`",
            ),
            (
                "# a comment\n[git]\n  pr_bsae = 1\n",
                "`ralph.toml` line 3, column 3: unknown field `pr_bsae`, expected one of `protected_branches`, `state_ref`, `worktree`",
            ),
            (
                "[sandbox]\nenabled = \"yes\"\n",
                "`ralph.toml` line 2, column 11: invalid type: string \"yes\", expected a boolean",
            ),
            (
                "[sandbox.resources]\nmemory = \"lots\"\n",
                "`ralph.toml` line 2, column 10: `lots` is not an amount of memory; write it like `8g` or `512m`",
            ),
            (
                "[model]\nmax_outage = \"a while\"\n",
                "`ralph.toml` line 2, column 14: `a while` is not a duration; write it like `12h`, `90s` or `500ms`",
            ),
            (
                "[model]\nretry_delay = 0\n",
                "`ralph.toml` line 2, column 15: the time must be longer than 0",
            ),
            (
                "[sandbox.network]\npolicy = \"open\"\n",
                "`ralph.toml` line 2, column 10: unknown variant `open`, expected one of `deny`, `allowlist`, `allow-all`",
            ),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()));
        }
        assert!(
            parse("= 1")
                .unwrap_err()
                .starts_with("`ralph.toml` line 1, column ")
        );
    }
}
