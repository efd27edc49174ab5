//! `agents.toml` in layers: the built-in coding agents, those of the user's file, and the
//! repository's adjustments to them.

use ralph_core::trust::{
    TrustAuthority, TrustFile, TrustProposal, TrustRule, UserOnlyValue, judge,
};
use ralph_providers::agent::Agents;
use serde_json::Value;

use super::error::{self, ConfigFileError};
use super::layered_settings::display_value;
use super::layers::{ConfigLayers, Layered, TrustFindings};
use super::project_file::ProjectFile;

/// Returns the effective agents of a directory.
pub fn load_agents(layers: &ConfigLayers) -> Result<Layered<Agents>, ConfigFileError> {
    let mut agents = Agents::built_in();
    if let Some(path) = layers.user_file(TrustFile::Agents)? {
        let text = error::read_user_file(&path)?;
        agents
            .extend(&text)
            .map_err(|error| ConfigFileError::invalid_at(&path, &text, error.offset, error.why))?;
    }
    let mut findings = TrustFindings::default();
    if let Some(file) = layers.repository_file(TrustFile::Agents) {
        let text = file.read()?;
        // Errors are reported at their position in the whole file, before any part of it is
        // applied.
        let wrong = |error: ralph_providers::agent::AgentsError| {
            ConfigFileError::invalid_at(&file.path, &text, error.offset, error.why)
        };
        agents.clone().extend(&text).map_err(wrong)?;
        let entries: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            ConfigFileError::invalid_at(&file.path, &text, offset, error.message().to_owned())
        })?;
        let hosts = entries.values().filter_map(|entry| entry.get("hosts"));
        let hosts = hosts.filter_map(toml::Value::as_array).flatten();
        let hosts = hosts.filter_map(toml::Value::as_str);
        ConfigFileError::require_hosts((&file.path, &text), hosts)?;
        let mut merge = AgentsMerge {
            layers,
            agents: &agents,
            file: &file,
            findings,
        };
        let accepted = merge.accepted_agents(entries.clone());
        findings = merge.findings;
        agents.extend(&accepted.to_string()).map_err(wrong)?;
    }
    Ok(Layered {
        value: agents,
        findings,
    })
}

/// Compares the agents of a repository's file with the effective ones without it.
struct AgentsMerge<'a> {
    layers: &'a ConfigLayers,
    agents: &'a Agents,
    file: &'a ProjectFile,
    findings: TrustFindings,
}

impl AgentsMerge<'_> {
    /// Returns the usable part of the agents. Omits an agent with a key that only the user may set.
    fn accepted_agents(&mut self, agents: toml::Table) -> toml::Table {
        let mut accepted = toml::Table::new();
        for (name, entry) in agents {
            let Some(entry) = entry.as_table() else {
                continue;
            };
            let refused = self.findings.overreach.len();
            let mut usable = toml::Table::new();
            for (field, value) in entry {
                if let Some(value) = self.accepted_field(&name, entry, field, value) {
                    usable.insert(field.clone(), value);
                }
            }
            if self.findings.overreach.len() == refused {
                accepted.insert(name, toml::Value::Table(usable));
            }
        }
        accepted
    }

    /// Returns the usable part of a value.
    fn accepted_field(
        &mut self,
        agent: &str,
        entry: &toml::Table,
        field: &str,
        value: &toml::Value,
    ) -> Option<toml::Value> {
        let key = format!("{agent}.{field}");
        let requested = serde_json::to_value(value).expect("a TOML value is valid JSON");
        let known = self.current_value(agent, entry, field);
        let (authority, rule) = judge(TrustFile::Agents, &key, &requested, known.as_ref());
        match (authority, rule) {
            (TrustAuthority::Harmless, _) => Some(value.clone()),
            (TrustAuthority::Proposal, Some(rule)) => {
                let known = known.unwrap_or_default();
                let items = value.as_array()?.iter().filter(|item| {
                    let text = item.as_str().unwrap_or_default();
                    let is_known = known
                        .as_array()
                        .is_some_and(|known| known.iter().any(|known| known == text));
                    is_known || self.is_approved(&key, text, rule)
                });
                Some(toml::Value::Array(items.cloned().collect()))
            }
            (TrustAuthority::UserOnly | TrustAuthority::Proposal, rule) => {
                if let Some(rule) = rule {
                    let value = display_value(&requested);
                    let overreach = UserOnlyValue::new(
                        self.file.display_name(),
                        TrustFile::Agents,
                        &key,
                        &value,
                        rule,
                    );
                    self.findings.overreach.push(overreach);
                }
                None
            }
        }
    }

    /// Returns the effective value of the agent that an entry changes.
    fn current_value(&self, agent: &str, entry: &toml::Table, field: &str) -> Option<Value> {
        let like = entry.get("like").and_then(toml::Value::as_str);
        // A new agent has no value yet.
        let Ok(known) = self.agents.get(like.unwrap_or(agent)) else {
            return None;
        };
        match field {
            "command" => Some(known.command.clone().into()),
            "model_arguments" => Some(known.model_arguments.clone().into()),
            "hosts" => Some(known.hosts.clone().into()),
            _ => None,
        }
    }

    fn is_approved(&mut self, key: &str, value: &str, rule: &TrustRule) -> bool {
        let proposal = TrustProposal::new(self.file.display_name(), key, value, rule);
        let is_approved = self.layers.approvals().covers(&proposal);
        self.findings.proposals.push(proposal);
        is_approved
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ralph_core::trust::rule;

    use super::*;
    use crate::config::Environment;

    #[test]
    fn every_key_is_in_the_table() {
        let error = Agents::built_in().extend("[a]\nnothing = 1\n").unwrap_err();
        let (_, fields) = error.why.split_once("expected one of ").unwrap();
        let fields: Vec<&str> = fields
            .split(", ")
            .map(|field| field.trim_matches('`'))
            .collect();
        assert!(fields.len() > 8, "{fields:?}");
        for field in fields {
            let key = format!("agent.{field}");
            assert!(rule(TrustFile::Agents, &key, None).is_some(), "{key}");
        }
    }

    fn load(user: &Path, project: &Path) -> Result<Layered<Agents>, ConfigFileError> {
        let user = user.display().to_string();
        let environment = Environment::for_test(&[("RALPH_CONFIG_DIR", &user)]);
        load_agents(&ConfigLayers::for_directory(&environment, project))
    }

    #[test]
    fn the_user_describes_agents_and_a_repository_tunes_them() {
        let (user, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = project.path().join("config/agents.toml");
        fs::create_dir(project.path().join("config")).unwrap();
        let names = |agents: &Agents| -> Vec<String> {
            agents.all().map(|agent| agent.name.clone()).collect()
        };
        let own = "[mine]\ncommand = [\"my-agent\"]\nhosts = [\"a.example\"]\n";
        fs::write(user.path().join("agents.toml"), own).unwrap();
        fs::write(
            &file,
            "[mine]\nimage = \"codex\"\nhosts = [\"a.example\", \"evil.example\"]\n\
             [evil]\ncommand = [\"sh\", \"-c\", \"evil\"]\n[claude.environment]\nNODE_OPTIONS = \"evil\"\n",
        )
        .unwrap();
        let Layered { value, findings } = load(user.path(), project.path()).unwrap();
        assert_eq!(
            names(&value),
            ["claude", "codex", "command", "mine", "opencode"]
        );
        let mine = value.get("mine").unwrap();
        assert_eq!(
            (mine.image.as_str(), &mine.hosts),
            ("codex", &vec!["a.example".to_owned()])
        );
        assert_eq!(value.get("claude"), Agents::built_in().get("claude"));
        let refused: Vec<&str> = findings.overreach.iter().map(|o| o.key.as_str()).collect();
        assert_eq!(refused, ["claude.environment", "evil.command"]);
        let proposed: Vec<&str> = findings
            .proposals
            .iter()
            .map(|p| p.value.as_str())
            .collect();
        assert_eq!(proposed, ["evil.example"]);
        fs::write(&file, "# mine\n[mine]\n  comand = []\n").unwrap();
        let error = load(user.path(), project.path()).unwrap_err().to_string();
        let position = format!(
            "`{}` line 3, column 3: unknown field `comand`",
            file.display()
        );
        assert!(error.starts_with(&position), "{error}");
    }
}
