//! The choice of a run's sandbox provider.

use ralph_core::lint::{self, LintFinding};
use ralph_core::task::{Contract, TaskFile};
use ralph_core::trust;

use super::container;
use crate::app::App;
use crate::config::{Settings, user_provider};
use crate::error::AppError;
use crate::planning::RunRequest;
use crate::providers::SANDBOX_PROVIDERS;

/// Returns the provider of a run, which must exist.
pub(crate) fn require_known_provider(
    request: &RunRequest,
    task: &TaskFile,
    app: &App,
) -> Result<String, AppError> {
    let name = provider_name(request, Some(task), app)?;
    container::require_known(&name)?;
    Ok(name)
}

/// Returns the sandbox provider that is named first in this order: flag, task, environment, file. A
/// task or a `.env` cannot choose one that isolates less than the user's choice.
pub(crate) fn provider_name(
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
) -> Result<String, AppError> {
    if let Some(name) = request.sandbox.clone() {
        return Ok(name);
    }
    let environment = app.environment();
    let task_provider = task.and_then(|task| task.contract.sandbox_provider);
    let requested = task_provider
        .map(|kind| kind.name().to_owned())
        .or_else(|| environment.default_provider().map(str::to_owned));
    let requested = match requested {
        Some(requested) => requested,
        None => app.settings()?.sandbox_provider().to_owned(),
    };
    Ok(match user_choice(app)? {
        Some(chosen) if trust::is_weaker_sandbox(&requested, &chosen) => chosen,
        Some(_) | None => requested,
    })
}

/// Returns a finding if the task names a sandbox provider that this version does not have.
pub fn unavailable_sandbox(task: &TaskFile) -> Option<LintFinding> {
    lint::unavailable_sandbox(task, &SANDBOX_PROVIDERS)
}

/// Returns the sandbox provider that the environment or a `ralph.toml` names, if it is not the
/// default.
pub(crate) fn configured_provider(app: &App) -> Result<Option<String>, AppError> {
    if let Some(name) = user_choice(app)? {
        return Ok(Some(name));
    }
    if let Some(name) = app.environment().default_provider() {
        return Ok(Some(name.to_owned()));
    }
    let settings = app.settings()?;
    let name = settings.sandbox_provider();
    let is_default = name == Settings::default().sandbox_provider();
    Ok((!is_default).then(|| name.to_owned()))
}

/// Returns the sandbox provider from the user's environment or `ralph.toml`.
fn user_choice(app: &App) -> Result<Option<String>, AppError> {
    match app.environment().user_provider() {
        Some(name) => Ok(Some(name.to_owned())),
        None => Ok(user_provider(&app.layers())?),
    }
}

/// Returns a notice if a task asks for weaker isolation than that of the chosen sandbox.
pub(crate) fn weaker_sandbox_notice(
    request: &RunRequest,
    contract: &Contract,
    sandbox: &str,
) -> Option<String> {
    let requested = contract.sandbox_provider?.name();
    let is_stronger = request.sandbox.is_none() && trust::is_weaker_sandbox(requested, sandbox);
    is_stronger.then(|| {
        format!(
            "the task asks for the sandbox `{requested}`; you chose `{sandbox}`, which isolates more and is used; \
             `--sandbox {requested}` wins over it"
        )
    })
}
