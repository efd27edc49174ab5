//! The choice of a run's sandbox provider.

use ralph_core::lint::{self, LintFinding};
use ralph_core::plan::EngineKind;
use ralph_core::task::{Contract, TaskFile};
use ralph_core::trust;
use ralph_providers::docker::DockerEngine;

use super::{container, worker};
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

/// The source of the choice of a sandbox provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxChooser {
    /// A flag, the user's environment or the user's `ralph.toml`, possibly strengthened by the task.
    User,
    /// Only a file of the repository.
    Repository,
    /// The default.
    Default,
}

/// The sandbox provider of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxChoice {
    pub(crate) name: String,
    pub(crate) chooser: SandboxChooser,
}

/// Returns the name of the sandbox provider of a run.
pub(crate) fn provider_name(
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
) -> Result<String, AppError> {
    Ok(choose_provider(request, task, app)?.name)
}

/// Returns the sandbox provider that is named first in this order: flag, task, environment, file. A
/// task or a `.env` cannot choose one that isolates less than the user's choice. An agent works in
/// `docker` by default.
pub(crate) fn choose_provider(
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
) -> Result<SandboxChoice, AppError> {
    if let Some(name) = request.sandbox.clone() {
        let chooser = SandboxChooser::User;
        return Ok(SandboxChoice { name, chooser });
    }
    let environment = app.environment();
    let task_provider = task.and_then(|task| task.contract.sandbox_provider);
    let requested = task_provider
        .map(|kind| kind.name().to_owned())
        .or_else(|| environment.default_provider().map(str::to_owned));
    let user = user_choice(app)?;
    let chooser = match (&user, &requested) {
        (Some(_), _) => SandboxChooser::User,
        (None, Some(_)) => SandboxChooser::Repository,
        (None, None) => SandboxChooser::Default,
    };
    let requested = match requested {
        Some(requested) => requested,
        None if chooser == SandboxChooser::Default && is_agent_run(request, task) => {
            "docker".to_owned()
        }
        None => app.settings()?.sandbox_provider().to_owned(),
    };
    let name = match user {
        Some(chosen) if trust::is_weaker_sandbox(&requested, &chosen) => chosen,
        Some(_) | None => requested,
    };
    Ok(SandboxChoice { name, chooser })
}

/// Returns whether an agent is the worker. Another check reports contradicting flags.
fn is_agent_run(request: &RunRequest, task: Option<&TaskFile>) -> bool {
    let contract = task.map(|task| &task.contract);
    matches!(worker::engine(request, contract), Ok(EngineKind::Agent))
}

/// Returns an error if an agent would work without isolation and only the repository asks for that.
pub(crate) fn require_user_choice(
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
) -> Result<(), AppError> {
    let choice = choose_provider(request, task, app)?;
    let is_unconfirmed = choice.name == "local" && choice.chooser == SandboxChooser::Repository;
    if !is_unconfirmed || !is_agent_run(request, task) {
        return Ok(());
    }
    let agent = worker::agent_name(request, task.map(|task| &task.contract));
    Err(AppError::usage(
        format!("agent `{agent}` would work without isolation"),
        "only the repository chooses the sandbox `local`",
        "use `--sandbox docker`, or accept it with `--sandbox local`",
    ))
}

/// Adds to the errors of an agent's default sandbox how to work without one. The request is
/// incomplete then, not the machine.
pub(crate) fn explain_default(
    errors: Vec<AppError>,
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
) -> Vec<AppError> {
    let is_default = choose_provider(request, task, app)
        .is_ok_and(|choice| choice.chooser == SandboxChooser::Default);
    if !is_default || !is_agent_run(request, task) {
        return errors;
    }
    let explain = |error: AppError| {
        let fix = format!(
            "{}, or let the agent work without isolation with `--sandbox local`",
            error.fix
        );
        AppError::usage(error.what, error.why, fix)
    };
    errors.into_iter().map(explain).collect()
}

/// Returns why the agent of a run can only work without isolation, if the user has to decide that.
pub(crate) async fn local_agent_reason(
    request: &RunRequest,
    task: &TaskFile,
    app: &App,
) -> Result<Option<String>, AppError> {
    if !is_agent_run(request, Some(task)) {
        return Ok(None);
    }
    let choice = choose_provider(request, Some(task), app)?;
    match (choice.chooser, choice.name.as_str()) {
        (SandboxChooser::Repository, "local") => Ok(Some(
            "the repository chooses the sandbox `local`".to_owned(),
        )),
        (SandboxChooser::Default, "docker") => {
            let engine = container::find_docker_engine(&app.settings()?, app).await;
            let is_reachable = match engine {
                Ok(host) => DockerEngine::connect(host.as_deref()).await.is_ok(),
                Err(_) => false,
            };
            Ok((!is_reachable).then(|| "no Docker Engine answers".to_owned()))
        }
        (SandboxChooser::User | SandboxChooser::Repository | SandboxChooser::Default, _) => {
            Ok(None)
        }
    }
}

/// Returns a finding if the task names a sandbox provider that this version does not have.
pub fn unavailable_sandbox(task: &TaskFile) -> Option<LintFinding> {
    lint::unavailable_sandbox(task, &SANDBOX_PROVIDERS)
}

/// Returns the sandbox provider that the environment or a `ralph.toml` names, if it is not the
/// default.
pub fn configured_provider(app: &App) -> Result<Option<String>, AppError> {
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
