//! An agent and its model, as in `agent_fallback`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An agent, and the model that it uses: `codex` or `claude:haiku`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    /// As in `config/agents.toml`.
    pub name: String,
    /// `None` means that the agent chooses.
    pub model: Option<String>,
}

impl AgentChoice {
    /// How to write one.
    pub const EXAMPLE: &'static str = "write the name of an agent, such as `codex`, or an agent with a model, such as `claude:haiku`";

    /// Parses a name, or a name and a model separated by a colon. The error completes a sentence.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (name, model) = match text.split_once(':') {
            Some((name, model)) => (name, Some(model)),
            None => (text, None),
        };
        if text.contains(char::is_whitespace) || text.starts_with('-') {
            return Err("contains whitespace or starts with `-`");
        }
        if name.is_empty() {
            return Err("names no agent");
        }
        if model.is_some_and(|model| model.is_empty() || model.starts_with('-')) {
            return Err("has no model after the colon");
        }
        Ok(Self {
            name: name.to_owned(),
            model: model.map(str::to_owned),
        })
    }
}

impl fmt::Display for AgentChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.model {
            Some(model) => write!(f, ":{model}"),
            None => Ok(()),
        }
    }
}

impl Serialize for AgentChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AgentChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .map_err(|why| serde::de::Error::custom(format!("`{text}` {why}: {}", Self::EXAMPLE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_have_a_model() {
        for (text, expected) in [
            ("codex", Ok(("codex", None))),
            ("claude:haiku", Ok(("claude", Some("haiku")))),
            ("opencode:zai/glm:4", Ok(("opencode", Some("zai/glm:4")))),
            ("", Err("names no agent")),
            (":haiku", Err("names no agent")),
            ("claude:", Err("has no model after the colon")),
            ("claude:--help", Err("has no model after the colon")),
            ("a b", Err("contains whitespace or starts with `-`")),
            ("-x", Err("contains whitespace or starts with `-`")),
        ] {
            let parsed = AgentChoice::parse(text);
            let parts = parsed
                .as_ref()
                .map(|choice| (choice.name.as_str(), choice.model.as_deref()));
            assert_eq!(parts.map_err(|why| *why), expected, "{text}");
            if let Ok(choice) = &parsed {
                assert_eq!(choice.to_string(), text);
            }
        }
    }
}
