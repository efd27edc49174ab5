//! The worker of a new task: an agent with a credential, or a model with a key.

use std::collections::BTreeSet;

use ralph_core::plan::EngineKind;
use ralph_core::task::{NewTaskWorker, SpendingLimit};
use ralph_providers::agent::Preset;

use crate::agent::{self, ChosenCredential};
use crate::app::App;
use crate::error::AppError;
use crate::planning::{RunRequest, model_choice};
use crate::tokens::stores::find_program;
use crate::tokens::{AgentAuth, AgentName};

/// The worker that can start on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerChoice {
    /// A coding agent.
    Agent {
        name: String,
        /// Where its credential is.
        credential: String,
    },
    /// A model that ralph calls itself.
    Model {
        profile: String,
        model: String,
        /// The variable with its key; `None` if it needs none.
        variable: Option<String>,
        spending: SpendingLimit,
    },
    /// Neither a credential nor a key was found.
    Missing {
        /// The variables that would contain the key of a model.
        variables: Vec<String>,
    },
}

impl WorkerChoice {
    /// Finds the first agent that has a credential and can be started in the sandbox, or else the
    /// first model profile whose key is set.
    pub(super) async fn find(sandbox: &str, app: &App) -> Result<Self, AppError> {
        match find_agent(sandbox, app).await? {
            Some(found) => Ok(found),
            None => find_model(app),
        }
    }

    /// Returns the worker to write into the task file.
    pub(super) fn task_value(&self) -> NewTaskWorker {
        match self {
            Self::Agent { name, .. } => NewTaskWorker::Agent(name.clone()),
            Self::Model { profile, .. } => NewTaskWorker::Profile(profile.clone()),
            Self::Missing { .. } => NewTaskWorker::Missing,
        }
    }

    /// Returns the spending limit that can be enforced.
    pub(super) fn spending(&self) -> SpendingLimit {
        match self {
            Self::Agent { .. } | Self::Missing { .. } => SpendingLimit::Cost,
            Self::Model { spending, .. } => *spending,
        }
    }
}

/// Returns the worker that the flags of a run name, or else finds one. Returns an error if there is
/// none.
pub(super) async fn worker_for_request(
    request: &RunRequest,
    sandbox: &str,
    app: &App,
) -> Result<(NewTaskWorker, SpendingLimit), AppError> {
    if request.agent.is_some() || request.engine == Some(EngineKind::Agent) {
        let name = request.agent.as_deref().unwrap_or(AgentName::DEFAULT);
        let worker = NewTaskWorker::Agent(name.to_owned());
        return Ok((worker, SpendingLimit::Cost));
    }
    let (model, profile) = (request.model.as_deref(), request.profile.as_deref());
    if model.is_some() || profile.is_some() {
        let choice = model_choice(model, profile, None, app)?;
        let worker = profile.map_or(NewTaskWorker::Unnamed, |profile| {
            NewTaskWorker::Profile(profile.to_owned())
        });
        return Ok((worker, spending_limit(choice.price.is_some())));
    }
    let found = match request.engine {
        Some(EngineKind::Actions) => find_model(app)?,
        Some(EngineKind::Agent) | None => WorkerChoice::find(sandbox, app).await?,
    };
    match &found {
        WorkerChoice::Missing { variables } => Err(no_worker(variables)),
        WorkerChoice::Agent { .. } | WorkerChoice::Model { .. } => {
            Ok((found.task_value(), found.spending()))
        }
    }
}

fn no_worker(variables: &[String]) -> AppError {
    AppError::runtime(
        "nothing can work on this task",
        "neither the credential of an agent nor the key of a model was found",
        missing_worker_fix(variables),
    )
}

/// Returns the fix for a missing worker; `variables` would contain the key of a model.
pub fn missing_worker_fix(variables: &[String]) -> String {
    let store = "store a credential with `ralph store-token`";
    if variables.is_empty() {
        return store.to_owned();
    }
    format!("{store}, or set `{}`", variables.join("` or `"))
}

fn spending_limit(has_price: bool) -> SpendingLimit {
    if has_price {
        SpendingLimit::Cost
    } else {
        SpendingLimit::Tokens
    }
}

async fn find_agent(sandbox: &str, app: &App) -> Result<Option<WorkerChoice>, AppError> {
    let agents = app.agents()?;
    let tokens = app.tokens_read_only()?;
    for name in AgentAuth::KNOWN {
        let Ok(preset) = agents.get(name) else {
            continue;
        };
        if !can_start(preset, sandbox, app) {
            continue;
        }
        match agent::find_credential(preset, None, &tokens).await {
            Ok(Some(ChosenCredential { found, .. })) => {
                return Ok(Some(WorkerChoice::Agent {
                    name: name.to_owned(),
                    credential: format!("{}, found in {}", found.mode, found.store),
                }));
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the agent `{name}` is not chosen"),
        }
    }
    Ok(None)
}

/// Returns whether an agent needs no further settings, and its program exists if it works on this
/// machine.
fn can_start(preset: &Preset, sandbox: &str, app: &App) -> bool {
    let program = preset.command.first().map_or("", String::as_str);
    let is_installed = sandbox != "local" || find_program(app.search_path(), program).is_some();
    is_installed && agent::require_model(preset, None).is_ok()
}

fn find_model(app: &App) -> Result<WorkerChoice, AppError> {
    let profiles = app.profiles()?;
    let models = app.providers_read_only()?.models;
    let preferred = [app.environment().default_profile(), profiles.default_name()];
    let others = profiles.iter().map(|(name, _)| name);
    let mut seen = BTreeSet::new();
    let mut variables = Vec::new();
    for name in preferred.into_iter().flatten().chain(others) {
        if !seen.insert(name) {
            continue;
        }
        let choice = model_choice(None, Some(name), None, app)?;
        let status = models.key_status(&choice);
        if let Err(error) = models.create(&choice, &[]) {
            tracing::debug!(%error, "the profile `{name}` is not chosen");
            variables.extend(status.into_iter().flat_map(|status| status.variables));
            continue;
        }
        return Ok(WorkerChoice::Model {
            profile: name.to_owned(),
            spending: spending_limit(choice.price.is_some()),
            model: choice.model,
            variable: status.and_then(|status| status.found_in),
        });
    }
    variables.dedup();
    Ok(WorkerChoice::Missing { variables })
}
