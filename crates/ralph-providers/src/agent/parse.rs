//! The files with agents.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use ralph_core::task::nearest;
use serde::Deserialize;
use toml::Spanned;

use super::preset::{Credential, Output, Preset, PromptForm, Timeouts};

/// The agents that ralph knows.
const BUILT_IN: &str = include_str!("agents.toml");

/// All agents of a project, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agents {
    by_name: BTreeMap<String, Preset>,
}

/// What is wrong with a file of agents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct AgentsError {
    /// Where in the text, in bytes.
    pub offset: usize,
    /// What is wrong there, in one line.
    pub why: String,
}

/// There is no agent with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{name}`")]
pub struct UnknownAgent {
    /// What was asked for.
    pub name: String,
    /// The name that was probably meant.
    pub meant: Option<String>,
    /// The names there are.
    pub known: Vec<String>,
}

/// An agent as a file says it; what it leaves out comes from another.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    like: Option<Spanned<String>>,
    command: Option<Spanned<Vec<String>>>,
    model_arguments: Option<Vec<String>>,
    environment: Option<Spanned<BTreeMap<String, String>>>,
    image: Option<String>,
    hosts: Option<Vec<String>>,
    credentials: Option<Vec<Credential>>,
    prompt: Option<PromptForm>,
    output: Option<Output>,
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
    /// Returns the agents that ralph knows.
    ///
    /// # Panics
    /// Never: a test reads the same text.
    pub fn built_in() -> Self {
        let mut agents = Self {
            by_name: BTreeMap::new(),
        };
        #[expect(clippy::expect_used, reason = "the text is a part of the program")]
        agents.extend(BUILT_IN).expect("the built-in agents");
        agents
    }

    /// Adds the agents of a file's text, and changes the known ones as it says. With an error nothing
    /// is changed.
    pub fn extend(&mut self, text: &str) -> Result<(), AgentsError> {
        let entries: BTreeMap<Spanned<String>, Spanned<Entry>> =
            toml::from_str(text).map_err(|error| AgentsError {
                offset: error.span().map_or(0, |span| span.start),
                why: error.message().replace('\n', ", "),
            })?;
        let mut added = BTreeMap::new();
        for (name, entry) in entries {
            let place = name.span();
            let name = name.into_inner();
            check_name(&name, &place)?;
            let preset = self.preset(&name, &place, entry.into_inner())?;
            added.insert(name, preset);
        }
        self.by_name.extend(added);
        Ok(())
    }

    /// Completes an entry with the agent it is like: a named one, else the one with its own name.
    fn preset(
        &self,
        name: &str,
        place: &Range<usize>,
        entry: Entry,
    ) -> Result<Preset, AgentsError> {
        let base = match &entry.like {
            Some(like) => Some(self.get(like.get_ref()).map_err(|unknown| AgentsError {
                offset: like.span().start,
                why: unknown.to_string() + " to be like" + &unknown.suggestion(),
            })?),
            None => self.by_name.get(name),
        };
        let (command, command_place) = match (entry.command, base) {
            (Some(command), _) => (command.get_ref().clone(), command.span()),
            (None, Some(base)) => (base.command.clone(), place.clone()),
            (None, None) => {
                let why = format!("agent `{name}` has no `command`, and is `like` no other");
                return Err(wrong(place, why));
            }
        };
        if command.first().is_none_or(String::is_empty) {
            let why = "`command` names no program";
            return Err(wrong(&command_place, why.into()));
        }
        let (environment, environment_place) = match entry.environment {
            Some(environment) => (environment.get_ref().clone(), environment.span()),
            None => (BTreeMap::new(), place.clone()),
        };
        refuse_token(command.iter(), &command_place)?;
        refuse_token(environment.values(), &environment_place)?;
        let base = base.cloned().unwrap_or_else(|| plain(name));
        Ok(Preset {
            name: name.to_owned(),
            command,
            model_arguments: entry.model_arguments.unwrap_or(base.model_arguments),
            environment: {
                // One switch more is no reason to repeat the others.
                let mut all = base.environment;
                all.extend(environment);
                all
            },
            image: entry.image.unwrap_or(base.image),
            hosts: entry.hosts.unwrap_or(base.hosts),
            credentials: entry.credentials.unwrap_or(base.credentials),
            prompt: entry.prompt.unwrap_or(base.prompt),
            output: entry.output.unwrap_or(base.output),
            timeouts: entry.timeouts.unwrap_or_default().over(base.timeouts),
        })
    }

    /// Finds an agent by its name.
    pub fn get(&self, name: &str) -> Result<&Preset, UnknownAgent> {
        self.by_name.get(name).ok_or_else(|| UnknownAgent {
            name: name.to_owned(),
            meant: nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// Returns all agents, by name.
    pub fn all(&self) -> impl Iterator<Item = &Preset> {
        self.by_name.values()
    }
}

impl UnknownAgent {
    fn suggestion(&self) -> String {
        match &self.meant {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => format!("; there are `{}`", self.known.join("`, `")),
        }
    }
}

impl TimeoutEntry {
    fn over(self, base: Timeouts) -> Timeouts {
        let seconds = |number: u32| Duration::from_secs(number.into());
        Timeouts {
            first_output: self.first_output_seconds.map_or(base.first_output, seconds),
            idle: self.idle_seconds.map_or(base.idle, seconds),
            total: self
                .total_minutes
                .map_or(base.total, |minutes| seconds(minutes) * 60),
        }
    }
}

/// What an agent is that says nothing but its command.
fn plain(name: &str) -> Preset {
    Preset {
        name: name.to_owned(),
        command: Vec::new(),
        model_arguments: Vec::new(),
        environment: BTreeMap::new(),
        image: "plain".into(),
        hosts: Vec::new(),
        credentials: Vec::new(),
        prompt: PromptForm::Text,
        output: Output::Lines,
        timeouts: Timeouts::default(),
    }
}

/// The longest name of an agent.
const MAX_NAME: usize = 40;

fn check_name(name: &str, place: &Range<usize>) -> Result<(), AgentsError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.chars().all(plain) && !name.is_empty() && name.len() <= MAX_NAME {
        return Ok(());
    }
    let why = format!(
        "`{}` cannot name an agent: a name has at most {MAX_NAME} of a-z, 0-9 and -",
        super::text::label(name)
    );
    Err(wrong(place, why))
}

fn refuse_token<'a>(
    mut texts: impl Iterator<Item = &'a String>,
    place: &Range<usize>,
) -> Result<(), AgentsError> {
    if texts.any(|text| text.contains("{token}")) {
        let why = "`{token}` belongs into the environment of `credentials`";
        return Err(wrong(place, why.into()));
    }
    Ok(())
}

fn wrong(place: &Range<usize>, why: String) -> AgentsError {
    AgentsError {
        offset: place.start,
        why,
    }
}
