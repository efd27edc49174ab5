//! `ralph.toml`: the settings of a project.

use std::path::Path;

use ralph_core::net::ProviderTool;
use ralph_core::outage::OutagePolicy;
use serde::{Deserialize, Serialize};

use super::error::ConfigFileError;
use super::values::{Cpus, Memory, TimeSpan, deserialize_nonzero_span};

/// The default settings file, with comments.
pub const DEFAULT_FILE: &str = include_str!("ralph.toml");

/// The complete settings of a project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    pub sandbox: SandboxSettings,
    pub model: ModelSettings,
    pub git: GitSettings,
    pub monitoring: MonitoringSettings,
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
    /// Whether one container serves all iterations of a run. Has no effect yet.
    pub reuse_container: bool,
    /// Whether an image that exists locally is not pulled again.
    pub use_local_image: bool,
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
    /// The timeout of one command. Has no effect yet.
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
    /// Branches that are never pushed to. Has no effect yet.
    pub protected_branches: Vec<String>,
    /// The author of the commits.
    pub worktree: GitIdentity,
}

impl Default for GitSettings {
    fn default() -> Self {
        Self {
            protected_branches: ["main", "master", "production"].map(String::from).into(),
            worktree: GitIdentity::default(),
        }
    }
}

/// `[git.worktree]`: the author of the commits. Has no effect yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitIdentity {
    pub name: String,
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
    fn what_has_no_meaning_is_an_error_with_its_place() {
        for (text, expected) in [
            (
                "[sandbx]\n",
                "`ralph.toml` line 1, column 2: unknown field `sandbx`, expected one of `sandbox`, `model`, `git`, `monitoring`",
            ),
            (
                "# a comment\n[git]\n  pr_bsae = 1\n",
                "`ralph.toml` line 3, column 3: unknown field `pr_bsae`, expected `protected_branches` or `worktree`",
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
