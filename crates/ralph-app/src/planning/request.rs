//! The request of a front end for a run.

use std::path::PathBuf;

use ralph_core::budget::BudgetLimits;
use ralph_core::plan::{EngineKind, IssuePlan};

/// The default task file.
pub const TASK_FILE: &str = "ralph_task.md";

/// A task file with overrides of the task and the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// The task file, absolute or relative to the working directory.
    pub file: PathBuf,
    /// The repository to use instead of the task's.
    pub repo: Option<String>,
    pub sandbox: Option<String>,
    pub engine: Option<EngineKind>,
    pub agent: Option<String>,
    pub profile: Option<String>,
    pub model: Option<String>,
    /// The budgets that replace those of the task.
    pub limits: BudgetLimits,
    /// The issue whose steps the task contains.
    pub issue: Option<IssueRequest>,
}

/// The issue of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueRequest {
    pub plan: IssuePlan,
    /// The text of the specification for the sandbox.
    pub spec: String,
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
            limits: BudgetLimits::default(),
            issue: None,
        }
    }
}
