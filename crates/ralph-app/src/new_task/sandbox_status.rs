//! The sandbox of a new task.

use ralph_core::task::SandboxKind;

use crate::app::App;
use crate::error::AppError;
use crate::planning::container::container_plan_for;
use crate::planning::{configured_provider, provider_errors};

/// The sandbox that a new task uses, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxStatus {
    /// The environment or `ralph.toml` names this provider, so the task need not.
    Configured(String),
    /// A Docker Engine answers.
    Docker,
    /// Docker cannot be used for this reason.
    Local(AppError),
}

impl SandboxStatus {
    /// Checks whether Docker can be used, unless a provider is configured.
    pub(super) async fn find(app: &App) -> Result<Self, AppError> {
        if let Some(name) = configured_provider(app)? {
            return Ok(Self::Configured(name));
        }
        let plan = match container_plan_for(None, app).await {
            Ok(plan) => plan,
            Err(error) => return Ok(Self::Local(error)),
        };
        let provider = app.providers_read_only()?.docker_provider(Some(&plan));
        let mut errors = provider_errors(&provider).await.into_iter();
        Ok(errors.next().map_or(Self::Docker, Self::Local))
    }

    /// Returns the name of the provider.
    pub fn name(&self) -> &str {
        match self {
            Self::Configured(name) => name,
            Self::Docker => SandboxKind::Docker.name(),
            Self::Local(_) => SandboxKind::Local.name(),
        }
    }

    /// Returns the provider to write into the task file.
    pub(super) fn task_value(&self) -> Option<SandboxKind> {
        match self {
            Self::Configured(_) => None,
            Self::Docker => Some(SandboxKind::Docker),
            Self::Local(_) => Some(SandboxKind::Local),
        }
    }
}
