//! What is known of an agent before it is started.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

/// How an agent is started, and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// More arguments, if a model is asked for.
    pub model_arguments: Vec<String>,
    /// Switches.
    pub environment: BTreeMap<String, String>,
    /// The agent whose image it runs in.
    pub image: String,
    /// Hosts that it reaches by itself, beside its model's provider.
    pub hosts: Vec<String>,
    /// What it can log in with, the best first; empty if it needs nothing.
    pub credentials: Vec<AgentCredential>,
    /// How it is given a prompt.
    pub prompt: PromptDelivery,
    /// What it prints.
    pub output: AgentOutputFormat,
    /// How long it may take.
    pub timeouts: PresetTimeouts,
}

/// One way of an agent to log in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentCredential {
    /// What it logs in with.
    pub kind: CredentialKind,
    /// The variables that tell it, with `{token}` and `{base_url}` in their values.
    pub environment: BTreeMap<String, String>,
}

impl AgentCredential {
    /// Returns the variables of a sandbox in which `token` stands for the credential and the gate
    /// is at `base_url`.
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

/// What an agent logs in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// A key of Anthropic's API.
    AnthropicApiKey,
    /// The token of a Claude subscription.
    AnthropicOauth,
    /// The key of a gateway that speaks as Anthropic's API does.
    AnthropicGateway,
    /// A key of OpenAI's API, or of one that is like it.
    Openai,
}

/// How an agent is given a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptDelivery {
    /// As the whole of its standard input.
    Text,
    /// As a message on its standard input, which takes more messages while it works.
    Messages,
    /// As its last argument, because it does not read its standard input.
    Argument,
}

/// What an agent prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentOutputFormat {
    /// The events of `claude --output-format stream-json`.
    StreamJson,
    /// The events of `codex exec --json`.
    CodexJson,
    /// The events of `opencode run --format json`.
    OpencodeJson,
    /// Lines for people.
    Lines,
}

/// How long an agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetTimeouts {
    /// Until it prints anything at all.
    pub first_output: Duration,
    /// Until it prints anything more.
    pub idle: Duration,
    /// Until it must be done.
    pub total: Duration,
}

impl Default for PresetTimeouts {
    /// Leaves time for a cold start, for the longest command that agents wait for, and for an hour
    /// of work.
    fn default() -> Self {
        Self {
            first_output: Duration::from_mins(2),
            idle: Duration::from_mins(15),
            total: Duration::from_hours(1),
        }
    }
}
