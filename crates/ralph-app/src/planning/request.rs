//! The request for a run, as a front end states it.

use std::path::PathBuf;

use ralph_core::plan::EngineKind;

/// The task file that is used when none is named.
pub const TASK_FILE: &str = "ralph_task.md";

/// A task file with the choices that override those of the task and of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// The task file, absolute or relative to the working directory.
    pub file: PathBuf,
    /// The repository instead of the task's.
    pub repo: Option<String>,
    /// The sandbox provider.
    pub sandbox: Option<String>,
    /// The engine.
    pub engine: Option<EngineKind>,
    /// The coding agent.
    pub agent: Option<String>,
    /// The model profile.
    pub profile: Option<String>,
    /// The model.
    pub model: Option<String>,
}

impl RunRequest {
    /// Returns a request without overrides.
    pub fn for_file(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            repo: None,
            sandbox: None,
            engine: None,
            agent: None,
            profile: None,
            model: None,
        }
    }
}
