//! The worker of a run: a model that ralph asks directly, or a coding agent with its login.

use std::collections::BTreeSet;

use ralph_core::plan::{AgentPlan, EngineKind};
use ralph_core::task::{AgentChoice, Contract};
use ralph_guest::available;
use ralph_providers::agent::Preset;
use serde::Deserialize as _;

use crate::agent::{AgentAccess, find_credential, login_from_credential, require_model};
use crate::app::App;
use crate::error::AppError;
use crate::planning::{PlanPurpose, RunRequest};
use crate::tokens::{AgentName, AuthMode, FoundToken, TokenError, TokenStorage};

/// The fix for an unknown agent.
pub const UNKNOWN_AGENT_HINT: &str = "use one of these, or define it in your own agents.toml";

/// Returns the engine of a run: the flags override the task.
pub fn engine(request: &RunRequest, contract: Option<&Contract>) -> Result<EngineKind, AppError> {
    let chosen = request.engine;
    if chosen == Some(EngineKind::Actions) && request.agent.is_some() {
        return Err(AppError::usage(
            "`--agent` cannot be used with `--engine actions`",
            "with the engine `actions`, ralph calls the model itself",
            "omit one of the two",
        ));
    }
    let default = if request.agent.is_some() {
        EngineKind::Agent
    } else {
        contract.map_or(EngineKind::Actions, |contract| contract.engine)
    };
    Ok(chosen.unwrap_or(default))
}

/// Returns the agent of a new run with its login, or `None` for the engine `actions`.
pub async fn agent_for_run(
    request: &RunRequest,
    contract: &Contract,
    app: &App,
    purpose: PlanPurpose,
) -> Result<Option<AgentAccess>, AppError> {
    if engine(request, Some(contract))? == EngineKind::Actions {
        return Ok(None);
    }
    refuse_profile(request)?;
    let fallback = fallback_choice(request, Some(contract), app)?;
    let plan = unresolved_plan(AgentChoice {
        name: agent_name(request, Some(contract)).to_owned(),
        model: request.model.clone(),
    });
    let mut access = access_for_purpose(plan, app, purpose).await?;
    if let Some(fallback) = fallback {
        let fallback = access_for_purpose(unresolved_plan(fallback), app, purpose).await?;
        access.fallback = Some(Box::new(fallback));
    }
    Ok(Some(access))
}

/// Returns the plan of an agent whose definition and login are not known yet.
fn unresolved_plan(choice: AgentChoice) -> AgentPlan {
    AgentPlan {
        name: choice.name,
        model: choice.model,
        auth: None,
        source: None,
        renew: None,
        provider_tools: BTreeSet::new(),
        definition: None,
        fallback: None,
    }
}

async fn access_for_purpose(
    plan: AgentPlan,
    app: &App,
    purpose: PlanPurpose,
) -> Result<AgentAccess, AppError> {
    match (access_without_fallback(&plan, app).await, purpose) {
        (Ok(access), _) => Ok(access),
        (Err(error), PlanPurpose::Start) => Err(error),
        (Err(_), PlanPurpose::Preview) => Ok(AgentAccess {
            preset: preset_for_plan(&plan, app)?,
            model: plan.model,
            login: None,
            fallback: None,
        }),
    }
}

/// Returns the agent that replaces the agent of a run: the task's, or else the user's. An agent cannot
/// replace itself.
pub fn fallback_choice(
    request: &RunRequest,
    contract: Option<&Contract>,
    app: &App,
) -> Result<Option<AgentChoice>, AppError> {
    let of_task = contract.and_then(|contract| contract.agent_fallback.clone());
    let fallback = match of_task {
        Some(fallback) => Some(fallback),
        None => app.settings()?.agent.fallback(),
    };
    let name = agent_name(request, contract);
    Ok(fallback.filter(|fallback| fallback.name != name || fallback.model != request.model))
}

/// Returns the name of the agent that a run would use: from the flag, the task or the default.
pub fn agent_name<'a>(request: &'a RunRequest, contract: Option<&'a Contract>) -> &'a str {
    let task_agent = contract.and_then(|contract| contract.agent.as_deref());
    let chosen = request.agent.as_deref().or(task_agent);
    chosen.unwrap_or(AgentName::DEFAULT)
}

/// Rejects `--profile` for a run whose worker is an agent.
pub fn refuse_profile(request: &RunRequest) -> Result<(), AppError> {
    if request.profile.is_none() {
        return Ok(());
    }
    Err(AppError::usage(
        "`--profile` cannot be used with an agent",
        "a profile configures ralph's model calls, and an agent calls its model itself",
        "choose the model with `--model`, by the name that the agent uses",
    ))
}

/// Returns the definition of an agent.
pub fn find_preset(name: &str, app: &App) -> Result<Preset, AppError> {
    let agents = app.agents()?;
    let preset = agents.get(name).map_err(|error| {
        AppError::usage(
            error.to_string(),
            format!("known agents: `{}`", error.known.join("`, `")),
            UNKNOWN_AGENT_HINT,
        )
    })?;
    Ok(preset.clone())
}

/// Returns the definition of a plan's agent: the pinned one, or for a new run and for plans of older
/// versions the one in the configuration.
fn preset_for_plan(plan: &AgentPlan, app: &App) -> Result<Preset, AppError> {
    let Some(definition) = &plan.definition else {
        return find_preset(&plan.name, app);
    };
    Preset::deserialize(definition).map_err(|error| {
        AppError::runtime(
            format!("cannot use the agent `{}` of the plan", plan.name),
            error.to_string(),
            "start the task again with `ralph run`",
        )
    })
}

/// Returns the agent of a plan and its fallback, with logins of the same kinds as in the plan.
pub async fn access_for_plan(plan: &AgentPlan, app: &App) -> Result<AgentAccess, AppError> {
    let mut access = access_without_fallback(plan, app).await?;
    if let Some(fallback) = &plan.fallback {
        let fallback = access_without_fallback(fallback, app).await?;
        access.fallback = Some(Box::new(fallback));
    }
    Ok(access)
}

async fn access_without_fallback(plan: &AgentPlan, app: &App) -> Result<AgentAccess, AppError> {
    let preset = preset_for_plan(plan, app)?;
    require_model(&preset, plan.model.as_deref())?;
    let wanted = plan.auth.as_deref().and_then(parse_auth_mode);
    let found = find_credential(&preset, wanted, &app.tokens_read_only()?).await?;
    let mut model = plan.model.clone();
    let login = match found {
        None => None,
        Some(chosen) => {
            let found = &chosen.found;
            app.add_secret(&format!("{} credential", plan.name), &found.token.secret);
            if let (Some(prefix), Some(name)) = (&found.token.model_prefix, &model)
                && !name.starts_with(prefix.as_str())
            {
                model = Some(format!("{prefix}{name}"));
            }
            Some(login_from_credential(chosen)?)
        }
    };
    Ok(AgentAccess {
        preset,
        model,
        login,
        fallback: None,
    })
}

/// Finds the credential that a run of this agent would use. An agent without a definition has only
/// its own credentials.
pub async fn find_token(
    agent: &AgentName,
    wanted: Option<AuthMode>,
    tokens: &TokenStorage,
    app: &App,
) -> Result<FoundToken, TokenError> {
    // A run reports an unreadable `agents.toml`.
    let agents = available(app.agents());
    let preset = agents.and_then(|agents| available(agents.get(agent.as_str()).cloned()));
    let chosen = match preset {
        Some(preset) => find_credential(&preset, wanted, tokens).await?,
        None => None,
    };
    match chosen {
        Some(chosen) => Ok(chosen.found),
        None => tokens.find_valid(agent, wanted).await,
    }
}

fn parse_auth_mode(name: &str) -> Option<AuthMode> {
    AuthMode::ALL.into_iter().find(|mode| mode.as_str() == name)
}
