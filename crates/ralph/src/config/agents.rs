//! `config/agents.toml`: the coding agents of a project.

use std::path::Path;

use ralph_providers::agent::Agents;

use super::problem::{self, ConfigError};

/// The name of the file, in the project's directory.
pub const AGENTS_FILE: &str = "config/agents.toml";

/// Returns the agents that hold in a directory: the built-in ones, with what the nearest file adds
/// and changes.
pub fn load_agents(directory: &Path) -> Result<Agents, ConfigError> {
    let Some(path) = super::find(directory, AGENTS_FILE) else {
        return Ok(Agents::built_in());
    };
    let text = problem::read(&path)?;
    Agents::with(&text).map_err(|error| ConfigError::at(&path, &text, error.offset, error.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projects_file_adds_to_the_built_in_agents() {
        let project = tempfile::tempdir().unwrap();
        let file = project.path().join(AGENTS_FILE);
        std::fs::create_dir(project.path().join("config")).unwrap();
        assert_eq!(load_agents(project.path()).unwrap(), Agents::built_in());
        std::fs::write(&file, "[mine]\ncommand = [\"my-agent\"]\n").unwrap();
        let agents = load_agents(project.path()).unwrap();
        let names: Vec<&str> = agents.all().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["claude", "codex", "command", "mine", "opencode"]);
        std::fs::write(&file, "# mine\n[mine]\n  comand = []\n").unwrap();
        let error = load_agents(project.path()).unwrap_err().to_string();
        let place = format!(
            "`{}` line 3, column 3: unknown field `comand`",
            file.display()
        );
        assert!(error.starts_with(&place), "{error}");
    }
}
