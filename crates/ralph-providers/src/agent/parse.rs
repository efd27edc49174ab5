//! Parses agent definition files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use ralph_core::task::nearest;
use serde::Deserialize;
use toml::Spanned;

use super::preset::{AgentCredential, AgentOutputFormat, Preset, PresetTimeouts, PromptDelivery};

/// The built-in agents.
const BUILT_IN: &str = include_str!("agents.toml");

/// All agents available to a project, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agents {
    by_name: BTreeMap<String, Preset>,
}

/// A syntax or content error in an agent definition file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct AgentsError {
    /// Byte offset in the text.
    pub offset: usize,
    pub why: String,
}

/// No agent has the requested name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{name}`")]
pub struct UnknownAgentName {
    pub name: String,
    pub closest: Option<String>,
    pub known: Vec<String>,
}

/// An agent entry in a file; missing values are inherited.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetEntry {
    like: Option<Spanned<String>>,
    command: Option<Spanned<Vec<String>>>,
    model_arguments: Option<Vec<String>>,
    environment: Option<Spanned<BTreeMap<String, String>>>,
    image: Option<String>,
    hosts: Option<Vec<String>>,
    credentials: Option<Vec<AgentCredential>>,
    prompt: Option<PromptDelivery>,
    output: Option<AgentOutputFormat>,
    timeouts: Option<TimeoutEntry>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeoutEntry {
    first_output_seconds: Option<u32>,
    idle_seconds: Option<u32>,
    total_minutes: Option<u32>,
}

impl Agents {
    /// Returns the built-in agents.
    ///
    /// # Panics
    /// Never: a test parses the same text.
    pub fn built_in() -> Self {
        let mut agents = Self {
            by_name: BTreeMap::new(),
        };
        #[expect(clippy::expect_used, reason = "the text is a part of the program")]
        agents.extend(BUILT_IN).expect("the built-in agents");
        agents
    }

    /// Adds or overrides agents from a file's text. On error, nothing is changed.
    pub fn extend(&mut self, text: &str) -> Result<(), AgentsError> {
        let entries: BTreeMap<Spanned<String>, Spanned<PresetEntry>> = toml::from_str(text)
            .map_err(|error| AgentsError {
                offset: error.span().map_or(0, |span| span.start),
                why: error.message().replace('\n', ", "),
            })?;
        let mut added = BTreeMap::new();
        for (name, entry) in entries {
            let span = name.span();
            let name = name.into_inner();
            check_name(&name, &span)?;
            let preset = self.resolve_preset(&name, &span, entry.into_inner())?;
            added.insert(name, preset);
        }
        self.by_name.extend(added);
        Ok(())
    }

    /// Completes an entry with the agent it inherits from: the named one, else the one with its own
    /// name.
    fn resolve_preset(
        &self,
        name: &str,
        span: &Range<usize>,
        entry: PresetEntry,
    ) -> Result<Preset, AgentsError> {
        let base = match &entry.like {
            Some(like) => Some(self.get(like.get_ref()).map_err(|unknown| AgentsError {
                offset: like.span().start,
                why: format!("`like`: {unknown}{}", unknown.suggestion()),
            })?),
            None => self.by_name.get(name),
        };
        let (command, command_span) = match (entry.command, base) {
            (Some(command), _) => (command.get_ref().clone(), command.span()),
            (None, Some(base)) => (base.command.clone(), span.clone()),
            (None, None) => {
                let why = format!("agent `{name}` has neither `command` nor `like`");
                return Err(error_at(span, why));
            }
        };
        if command.first().is_none_or(String::is_empty) {
            let why = "`command` does not name a program";
            return Err(error_at(&command_span, why.into()));
        }
        let (environment, environment_span) = match entry.environment {
            Some(environment) => (environment.get_ref().clone(), environment.span()),
            None => (BTreeMap::new(), span.clone()),
        };
        reject_token(command.iter(), &command_span)?;
        reject_token(environment.values(), &environment_span)?;
        let base = base.cloned().unwrap_or_else(|| default_preset(name));
        Ok(Preset {
            name: name.to_owned(),
            command,
            model_arguments: entry.model_arguments.unwrap_or(base.model_arguments),
            environment: {
                // Merged, so that adding one variable does not require repeating the others.
                let mut all = base.environment;
                all.extend(environment);
                all
            },
            image: entry.image.unwrap_or(base.image),
            hosts: entry.hosts.unwrap_or(base.hosts),
            credentials: entry.credentials.unwrap_or(base.credentials),
            prompt: entry.prompt.unwrap_or(base.prompt),
            output: entry.output.unwrap_or(base.output),
            timeouts: entry.timeouts.unwrap_or_default().merge_into(base.timeouts),
        })
    }

    /// Finds an agent by its name.
    pub fn get(&self, name: &str) -> Result<&Preset, UnknownAgentName> {
        self.by_name.get(name).ok_or_else(|| UnknownAgentName {
            name: name.to_owned(),
            closest: nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// Returns all agents, by name.
    pub fn all(&self) -> impl Iterator<Item = &Preset> {
        self.by_name.values()
    }
}

impl UnknownAgentName {
    fn suggestion(&self) -> String {
        match &self.closest {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => format!("; known agents: `{}`", self.known.join("`, `")),
        }
    }
}

impl TimeoutEntry {
    fn merge_into(self, base: PresetTimeouts) -> PresetTimeouts {
        let seconds = |number: u32| Duration::from_secs(number.into());
        PresetTimeouts {
            first_output: self.first_output_seconds.map_or(base.first_output, seconds),
            idle: self.idle_seconds.map_or(base.idle, seconds),
            total: self
                .total_minutes
                .map_or(base.total, |minutes| seconds(minutes) * 60),
        }
    }
}

/// Defaults for an agent that only specifies its command.
fn default_preset(name: &str) -> Preset {
    Preset {
        name: name.to_owned(),
        command: Vec::new(),
        model_arguments: Vec::new(),
        environment: BTreeMap::new(),
        image: "plain".into(),
        hosts: Vec::new(),
        credentials: Vec::new(),
        prompt: PromptDelivery::Text,
        output: AgentOutputFormat::Lines,
        timeouts: PresetTimeouts::default(),
    }
}

/// Maximum length of an agent name.
const MAX_NAME: usize = 40;

fn check_name(name: &str, span: &Range<usize>) -> Result<(), AgentsError> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.chars().all(is_allowed) && !name.is_empty() && name.len() <= MAX_NAME {
        return Ok(());
    }
    let why = format!(
        "invalid agent name `{}`: a name has at most {MAX_NAME} characters of a-z, 0-9 and -",
        super::text::short_label(name)
    );
    Err(error_at(span, why))
}

fn reject_token<'a>(
    mut texts: impl Iterator<Item = &'a String>,
    span: &Range<usize>,
) -> Result<(), AgentsError> {
    if texts.any(|text| text.contains("{token}")) {
        let why = "`{token}` is only allowed in the environment of `credentials`";
        return Err(error_at(span, why.into()));
    }
    Ok(())
}

fn error_at(span: &Range<usize>, why: String) -> AgentsError {
    AgentsError {
        offset: span.start,
        why,
    }
}
