//! `.agent-loop/config.json`: the sandbox provider of a repository, for tools that share the directory.

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
}

/// Returns the sandbox provider that the nearest file names, which is one that ralph knows.
pub(super) fn sandbox_provider(
    layers: &ConfigLayers,
) -> Result<Option<(ProjectFile, String)>, ConfigFileError> {
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
    let Some(provider) = content.provider else {
        return Ok(None);
    };
    let known = SandboxKind::ALL.map(SandboxKind::name);
    if known.contains(&provider.as_str()) {
        return Ok(Some((file, provider)));
    }
    let hint = match nearest(&provider, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    let why = format!("`{provider}` is not a sandbox provider; {hint}");
    let offset = text.find(&provider).unwrap_or_default();
    Err(ConfigFileError::invalid_at(&file.path, &text, offset, why))
}
