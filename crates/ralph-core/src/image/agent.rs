//! The Dockerfiles shipped with ralph, one per agent.

use std::fmt;

/// A sandbox image for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentImage {
    /// Languages, tools and `claude`.
    Claude,
    /// Languages, tools and `codex`.
    Codex,
    /// Languages and tools without an agent; the default.
    Plain,
}

/// There is no image for the agent with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no image for agent `{name}`; known images are `claude`, `codex` and `plain`")]
pub struct UnknownAgentImage {
    name: String,
}

impl AgentImage {
    /// All images.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Plain];

    /// Finds the image with this name.
    pub fn parse(name: &str) -> Result<Self, UnknownAgentImage> {
        Self::ALL
            .into_iter()
            .find(|image| image.name() == name)
            .ok_or_else(|| UnknownAgentImage {
                name: name.to_owned(),
            })
    }

    /// Returns the image for an agent; agents without their own image use the plain one.
    pub fn for_agent(agent: &str) -> Self {
        Self::parse(agent).unwrap_or(Self::Plain)
    }

    /// Returns the name of the agent, which is part of tags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Plain => "plain",
        }
    }

    /// Returns the Dockerfile.
    pub fn dockerfile(self) -> &'static str {
        match self {
            Self::Claude => include_str!("../../../../images/claude/Dockerfile"),
            Self::Codex => include_str!("../../../../images/codex/Dockerfile"),
            Self::Plain => include_str!("../../../../images/plain/Dockerfile"),
        }
    }
}

impl fmt::Display for AgentImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the default base image of a Dockerfile: `ARG BASE_IMAGE=…` before its first `FROM`.
pub fn default_base(dockerfile: &str) -> Option<&str> {
    dockerfile
        .lines()
        .map(str::trim)
        .take_while(|line| !starts_with_instruction(line, "FROM"))
        .filter(|line| starts_with_instruction(line, "ARG"))
        .find_map(|line| line[3..].trim_start().strip_prefix("BASE_IMAGE="))
        .map(|value| value.trim().trim_matches(['"', '\'']))
        .filter(|value| !value.is_empty())
}

/// Returns whether a line starts with the instruction `word`, ignoring case.
fn starts_with_instruction(line: &str, word: &str) -> bool {
    line.split_whitespace()
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::ImageName;

    #[test]
    fn every_agent_has_a_complete_dockerfile() {
        for image in AgentImage::ALL {
            let text = image.dockerfile();
            let base = default_base(text).unwrap();
            assert!(ImageName::parse(base).is_ok(), "{image}: {base}");
            assert!(text.contains("\nFROM ${BASE_IMAGE}\n"), "{image}");
            assert!(text.ends_with("\nUSER agent\n"), "{image}");
            assert!(text.contains("10001"), "{image}");
            assert_eq!(AgentImage::parse(image.name()), Ok(image));
        }
    }

    #[test]
    fn an_agent_without_an_image_gets_the_plain_one() {
        assert_eq!(AgentImage::for_agent("codex"), AgentImage::Codex);
        assert_eq!(AgentImage::for_agent("opencode"), AgentImage::Plain);
        assert_eq!(
            AgentImage::parse("opencode").unwrap_err().to_string(),
            "no image for agent `opencode`; known images are `claude`, `codex` and `plain`"
        );
    }

    #[test]
    fn the_default_base_is_set_before_the_first_from() {
        for (text, base) in [
            (
                "# x\nARG BASE_IMAGE=debian:12\nFROM ${BASE_IMAGE}\n",
                Some("debian:12"),
            ),
            ("arg BASE_IMAGE=\"debian:12\"\nfrom x\n", Some("debian:12")),
            ("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n", None),
            ("ARG BASE_IMAGE=\nFROM x\n", None),
            ("FROM x\nARG BASE_IMAGE=debian:12\n", None),
            ("ARGBASE_IMAGE=x\nARG OTHER=y\n", None),
        ] {
            assert_eq!(default_base(text), base, "{text:?}");
        }
    }
}
