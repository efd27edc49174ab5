//! Identifies a credential: the name of an agent and an authentication mode.

use std::fmt;

/// The name of an agent, such as `claude`. It is part of file names and of keyring entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentName(String);

/// The reason why a text is not a valid name of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has 1 to 64 lowercase letters, digits, `-` and `_`, and starts with a letter or a digit"
)]
pub struct AgentNameError;

impl AgentName {
    /// The default agent.
    pub const DEFAULT: &str = "claude";
    const MAX_BYTES: usize = 64;

    /// Parses a name.
    pub fn parse(name: &str) -> Result<Self, AgentNameError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_name = name.starts_with(is_plain)
            && name.len() <= Self::MAX_BYTES
            && name.chars().all(|c| is_plain(c) || matches!(c, '-' | '_'));
        is_name.then(|| Self(name.to_owned())).ok_or(AgentNameError)
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a credential is sent to an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// The token of a subscription, as a bearer token.
    Oauth,
    /// A key that is billed by use.
    ApiKey,
    /// The key of a gateway with a separate address.
    Gateway,
}

impl AuthMode {
    /// All modes, in the order of the search.
    pub const ALL: [Self; 3] = [Self::Oauth, Self::ApiKey, Self::Gateway];

    /// Returns the name of the mode on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Oauth => "oauth",
            Self::ApiKey => "api-key",
            Self::Gateway => "gateway",
        }
    }
}

impl fmt::Display for AuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The protocol of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentWire {
    /// Anthropic's messages API.
    AnthropicMessages,
    /// `OpenAI`'s responses API.
    OpenAiResponses,
    /// `OpenAI`'s chat completions API, which many other providers support.
    OpenAiChat,
}

impl AgentWire {
    const ANTHROPIC_PREFIX: &str = "sk-ant-";

    /// Returns the address of the original API with this protocol.
    pub fn default_api(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "https://api.anthropic.com",
            Self::OpenAiResponses | Self::OpenAiChat => "https://api.openai.com/v1",
        }
    }

    /// Returns the prefix of every credential of that API.
    pub fn key_prefix(self) -> &'static str {
        match self {
            Self::AnthropicMessages => Self::ANTHROPIC_PREFIX,
            Self::OpenAiResponses | Self::OpenAiChat => "sk-",
        }
    }

    /// Returns whether a credential has the format of that API. A credential in another format is sent
    /// there only if the user names the API explicitly.
    pub fn matches_key(self, credential: &str) -> bool {
        let is_anthropic = credential.starts_with(Self::ANTHROPIC_PREFIX);
        match self {
            Self::AnthropicMessages => is_anthropic,
            Self::OpenAiResponses | Self::OpenAiChat => {
                !is_anthropic && credential.starts_with(self.key_prefix())
            }
        }
    }
}

/// The known properties of an agent that concern its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentAuth {
    /// The protocol of the agent's API; `None` if ralph does not support that API.
    pub wire: Option<AgentWire>,
    /// The supported authentication modes, the default first.
    pub modes: &'static [AuthMode],
    /// The variables that may contain a credential of the agent.
    pub variables: &'static [(AuthMode, &'static str)],
}

impl AgentAuth {
    /// The agents with known properties, and GitHub.
    pub const KNOWN: [&str; 5] = ["claude", "codex", "opencode", "cursor", Self::GITHUB];

    /// The name of GitHub, whose tokens are stored like those of agents.
    pub const GITHUB: &str = "github";

    /// Returns the properties of an agent. An agent of another name has an unsupported API.
    pub fn for_agent(name: &AgentName) -> Self {
        use AuthMode::{ApiKey, Gateway, Oauth};
        match name.as_str() {
            "claude" => Self {
                wire: Some(AgentWire::AnthropicMessages),
                modes: &[Oauth, ApiKey, Gateway],
                variables: &[
                    (Oauth, "CLAUDE_CODE_OAUTH_TOKEN"),
                    (ApiKey, "ANTHROPIC_API_KEY"),
                    (Gateway, "ANTHROPIC_AUTH_TOKEN"),
                ],
            },
            "codex" => Self {
                wire: Some(AgentWire::OpenAiResponses),
                modes: &[ApiKey, Gateway],
                variables: &[(ApiKey, "CODEX_API_KEY"), (ApiKey, "OPENAI_API_KEY")],
            },
            "opencode" => Self {
                wire: Some(AgentWire::OpenAiChat),
                modes: &[ApiKey, Gateway],
                variables: &[(ApiKey, "OPENAI_API_KEY")],
            },
            "cursor" => Self {
                wire: None,
                modes: &[ApiKey],
                variables: &[(ApiKey, "CURSOR_API_KEY")],
            },
            _ => Self {
                wire: None,
                modes: &[ApiKey, Gateway],
                variables: &[],
            },
        }
    }

    /// Returns the mode that a credential's prefix indicates, or else the agent's default.
    pub fn infer_mode(&self, credential: &str) -> AuthMode {
        let indicated = if credential.starts_with("sk-ant-oat") {
            Some(AuthMode::Oauth)
        } else if credential.starts_with("sk-") {
            Some(AuthMode::ApiKey)
        } else {
            None
        };
        indicated
            .filter(|mode| self.modes.contains(mode))
            .unwrap_or(self.modes[0])
    }
}

/// Identifies a credential by agent and authentication mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSlot {
    pub agent: AgentName,
    pub mode: AuthMode,
}

impl TokenSlot {
    /// The account of all entries in a keyring.
    pub const KEYRING_ACCOUNT: &str = "agent-loop";

    /// Returns the name of the entry in a keyring. The name of an agent has no dot, so all entries
    /// differ.
    pub fn keyring_service(&self) -> String {
        match self.mode {
            AuthMode::Oauth => format!("{}-token", self.agent),
            AuthMode::ApiKey | AuthMode::Gateway => format!("{}-token.{}", self.agent, self.mode),
        }
    }
}

/// Returns the command that stores a credential of an agent.
pub fn store_command(agent: &AgentName, mode: Option<AuthMode>) -> String {
    let mut command = "ralph store-token".to_owned();
    if agent.as_str() != AgentName::DEFAULT {
        command = format!("{command} --agent {agent}");
    }
    match mode {
        Some(mode) if mode != AgentAuth::for_agent(agent).modes[0] => {
            format!("{command} --auth {mode}")
        }
        Some(_) | None => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_a_path_and_in_a_command() {
        for name in ["claude", "a", "my-agent_2", "7b"] {
            assert_eq!(AgentName::parse(name).unwrap().as_str(), name);
        }
        let long = "a".repeat(65);
        for name in [
            "", "Claude", "-a", "_a", "a.b", "a/b", "..", "a b", "é", &long,
        ] {
            assert_eq!(AgentName::parse(name), Err(AgentNameError), "{name}");
        }
    }

    #[test]
    fn every_slot_has_a_distinct_entry() {
        let slot = |agent: &str, mode| {
            let agent = AgentName::parse(agent).unwrap();
            TokenSlot { agent, mode }.keyring_service()
        };
        assert_eq!(slot("claude", AuthMode::Oauth), "claude-token");
        assert_eq!(slot("claude", AuthMode::ApiKey), "claude-token.api-key");
        assert_eq!(slot("codex", AuthMode::Gateway), "codex-token.gateway");
    }

    #[test]
    fn the_mode_is_inferred_from_the_credential() {
        let mode = |agent: &str, credential: &str| {
            AgentAuth::for_agent(&AgentName::parse(agent).unwrap()).infer_mode(credential)
        };
        for (agent, credential, expected) in [
            ("claude", "sk-ant-oat01-x", AuthMode::Oauth),
            ("claude", "sk-ant-api03-x", AuthMode::ApiKey),
            ("claude", "anything", AuthMode::Oauth),
            ("codex", "sk-proj-x", AuthMode::ApiKey),
            ("codex", "sk-ant-oat01-x", AuthMode::ApiKey),
            ("mine", "anything", AuthMode::ApiKey),
        ] {
            assert_eq!(mode(agent, credential), expected, "{agent} {credential}");
        }
    }

    #[test]
    fn a_credential_of_another_provider_is_recognised() {
        for (credential, expected) in [
            ("sk-ant-oat01-x", (true, false)),
            ("sk-ant-api03-x", (true, false)),
            ("sk-proj-x", (false, true)),
            ("the-key-of-a-gateway", (false, false)),
            ("", (false, false)),
        ] {
            let seen = (
                AgentWire::AnthropicMessages.matches_key(credential),
                AgentWire::OpenAiResponses.matches_key(credential),
            );
            assert_eq!(seen, expected, "{credential}");
        }
    }

    #[test]
    fn the_suggested_command_names_non_default_options() {
        let command = |agent: &str, mode| store_command(&AgentName::parse(agent).unwrap(), mode);
        for (agent, mode, expected) in [
            ("claude", None, "ralph store-token"),
            ("claude", Some(AuthMode::Oauth), "ralph store-token"),
            (
                "claude",
                Some(AuthMode::ApiKey),
                "ralph store-token --auth api-key",
            ),
            (
                "codex",
                Some(AuthMode::ApiKey),
                "ralph store-token --agent codex",
            ),
            (
                "codex",
                Some(AuthMode::Gateway),
                "ralph store-token --agent codex --auth gateway",
            ),
        ] {
            assert_eq!(command(agent, mode), expected);
        }
    }
}
