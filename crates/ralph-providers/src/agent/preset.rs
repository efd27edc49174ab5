//! The static description of an agent.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How an agent is started, and its requirements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preset {
    pub name: String,
    pub command: Vec<String>,
    /// Arguments that are added if a model is requested.
    pub model_arguments: Vec<String>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// The agent whose image it runs in.
    pub image: String,
    /// Hosts that the agent contacts in addition to its model provider.
    pub hosts: Vec<String>,
    /// Accepted credentials, preferred first; empty if none is needed.
    pub credentials: Vec<AgentCredential>,
    pub prompt: PromptDelivery,
    pub output: AgentOutputFormat,
    pub timeouts: PresetTimeouts,
}

impl Preset {
    /// Returns the variables with which the program sends its telemetry to an address. Only the programs with the
    /// output of `claude` have such variables.
    pub fn telemetry_environment(&self, url: &str, token: &str) -> BTreeMap<String, String> {
        match self.output {
            AgentOutputFormat::StreamJson => {}
            AgentOutputFormat::CodexJson
            | AgentOutputFormat::OpencodeJson
            | AgentOutputFormat::Lines => return BTreeMap::new(),
        }
        let header = format!("Authorization=Bearer {token}");
        let variables = [
            ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_LOGS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url),
            ("OTEL_EXPORTER_OTLP_HEADERS", &header),
            ("OTEL_METRIC_EXPORT_INTERVAL", "10000"),
        ];
        variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }
}

/// One way for an agent to authenticate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCredential {
    pub kind: CredentialKind,
    /// Variables that pass the credential, with `{token}` and `{base_url}` in their values.
    pub environment: BTreeMap<String, String>,
}

impl AgentCredential {
    /// Returns the sandbox variables, with `token` as the credential and the gate at `base_url`.
    pub fn environment(&self, token: &str, base_url: &str) -> BTreeMap<String, String> {
        let fill = |text: &String| {
            text.replace("{base_url}", base_url)
                .replace("{token}", token)
        };
        let variables = self.environment.iter();
        variables
            .map(|(name, value)| (name.clone(), fill(value)))
            .collect()
    }
}

/// The kind of credential an agent authenticates with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// An Anthropic API key.
    AnthropicApiKey,
    /// The token of a Claude subscription.
    AnthropicOauth,
    /// The key of a gateway that is compatible with Anthropic's API.
    AnthropicGateway,
    /// A key for OpenAI's API or a compatible one.
    Openai,
}

/// How the prompt is passed to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptDelivery {
    /// As its entire standard input.
    Text,
    /// As a message on its standard input, which accepts more messages during the session.
    Messages,
    /// As its last argument, because it does not read its standard input.
    Argument,
}

/// The output format of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentOutputFormat {
    /// The events of `claude --output-format stream-json`.
    StreamJson,
    /// The events of `codex exec --json`.
    CodexJson,
    /// The events of `opencode run --format json`.
    OpencodeJson,
    /// Plain text.
    Lines,
}

/// Time limits of an agent session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TimeoutSeconds", into = "TimeoutSeconds")]
pub struct PresetTimeouts {
    /// Until the first output.
    pub first_output: Duration,
    /// Between two outputs.
    pub idle: Duration,
    /// For the whole session.
    pub total: Duration,
}

/// [`PresetTimeouts`] in the plan of a run. The units of `agents.toml` are whole seconds, too.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the stored names state the unit")]
struct TimeoutSeconds {
    first_output_seconds: u64,
    idle_seconds: u64,
    total_seconds: u64,
}

impl From<TimeoutSeconds> for PresetTimeouts {
    fn from(stored: TimeoutSeconds) -> Self {
        Self {
            first_output: Duration::from_secs(stored.first_output_seconds),
            idle: Duration::from_secs(stored.idle_seconds),
            total: Duration::from_secs(stored.total_seconds),
        }
    }
}

impl From<PresetTimeouts> for TimeoutSeconds {
    fn from(timeouts: PresetTimeouts) -> Self {
        Self {
            first_output_seconds: timeouts.first_output.as_secs(),
            idle_seconds: timeouts.idle.as_secs(),
            total_seconds: timeouts.total.as_secs(),
        }
    }
}

impl Default for PresetTimeouts {
    /// Allows for a cold start, for the longest command that agents wait for, and for an hour of
    /// work.
    fn default() -> Self {
        Self {
            first_output: Duration::from_mins(2),
            idle: Duration::from_mins(15),
            total: Duration::from_hours(1),
        }
    }
}
