//! The sandbox providers that work on this machine.

use std::time::Duration;

use ralph_core::ports::ProviderProblem;
use tokio::time::timeout;

use crate::app::App;
use crate::error::AppError;
use crate::planning::container;
use crate::providers::{Providers, SANDBOX_PROVIDERS};

/// The time for the answer of a provider.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a sandbox provider works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxProviderState {
    pub name: &'static str,
    /// Why it does not work.
    pub problem: Option<ProviderProblem>,
}

/// Returns whether each sandbox provider works. Creates no sandbox.
pub async fn list_sandbox_providers(app: &App) -> Result<Vec<SandboxProviderState>, AppError> {
    let providers = app.providers()?;
    let mut states = Vec::new();
    for name in SANDBOX_PROVIDERS {
        let found = timeout(TIMEOUT, find_problem(name, &providers, app)).await;
        let problem = found.unwrap_or_else(|_| {
            Ok(Some(ProviderProblem {
                what: format!("it did not answer within {} seconds", TIMEOUT.as_secs()),
                fix: "see `ralph preflight`".into(),
            }))
        })?;
        states.push(SandboxProviderState { name, problem });
    }
    Ok(states)
}

async fn find_problem(
    name: &str,
    providers: &Providers,
    app: &App,
) -> Result<Option<ProviderProblem>, AppError> {
    if name == "docker" {
        let engine = container::find_docker_engine(&app.settings()?, app).await?;
        // An engine that lists its containers also creates them.
        let listed = providers.docker_provider_at(engine).list_all().await;
        return Ok(listed.err().map(|error| error.problem()));
    }
    let limits = container::local_limits(None, app)?;
    let provider = providers.sandbox_provider(name, None, limits)?;
    Ok(provider.preflight().await.into_iter().next())
}
