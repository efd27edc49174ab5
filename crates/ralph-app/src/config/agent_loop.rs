//! `.agent-loop/config.json`: the sandbox provider and the set-up command of a repository, for tools
//! that share the directory.

use ralph_core::task::{SandboxKind, nearest};
use serde::Deserialize;

use super::error::ConfigFileError;
use super::find_project_file;
use super::layers::ConfigLayers;
use super::project_file::ProjectFile;

const FILE: &str = ".agent-loop/config.json";

/// The content of the file. A key that ralph does not use is rejected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentLoopFile {
    #[serde(rename = "type")]
    provider: Option<String>,
    setup_command: Option<String>,
}

/// The settings of the nearest file.
pub(super) struct AgentLoopSettings {
    pub(super) file: ProjectFile,
    /// A sandbox provider that ralph knows.
    pub(super) provider: Option<String>,
    /// The command that installs the dependencies.
    pub(super) setup_command: Option<String>,
}

/// Returns the settings of the nearest file, if there is one.
pub(super) fn agent_loop_settings(
    layers: &ConfigLayers,
) -> Result<Option<AgentLoopSettings>, ConfigFileError> {
    let Some(file) = find_project_file(layers.directory(), FILE) else {
        return Ok(None);
    };
    let text = file.read()?;
    let invalid = |line: usize, column: usize, why: String| ConfigFileError::Invalid {
        path: file.path.clone(),
        line,
        column,
        why,
    };
    let content: AgentLoopFile = serde_json::from_str(&text).map_err(|error| {
        let message = error.to_string();
        let why = message
            .rsplit_once(" at line ")
            .map_or(&*message, |(why, _)| why);
        invalid(error.line().max(1), error.column().max(1), why.to_owned())
    })?;
    let setup_command = content.setup_command.map(|text| text.trim().to_owned());
    if setup_command.as_deref() == Some("") {
        let offset = text.find("setup_command").unwrap_or_default();
        let why = "`setup_command` is empty".to_owned();
        return Err(ConfigFileError::invalid_at(&file.path, &text, offset, why));
    }
    let known = SandboxKind::ALL.map(SandboxKind::name);
    let unknown = content
        .provider
        .as_deref()
        .filter(|provider| !known.contains(provider));
    let Some(provider) = unknown else {
        return Ok(Some(AgentLoopSettings {
            file,
            provider: content.provider,
            setup_command,
        }));
    };
    let hint = match nearest(provider, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    let why = format!("`{provider}` is not a sandbox provider; {hint}");
    let offset = text.find(provider).unwrap_or_default();
    Err(ConfigFileError::invalid_at(&file.path, &text, offset, why))
}
