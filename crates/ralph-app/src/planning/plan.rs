//! Completes a task file and flags to a plan, without starting or writing anything.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::id::RunId;
use ralph_core::lint;
use ralph_core::plan::{Delivery, EngineKind, RunPlan};
use ralph_core::ports::{ProviderProblem, SandboxProvider};
use ralph_core::profile::ModelChoice;
use ralph_core::task::{Contract, TaskFile};
use ralph_engine::contract;
use ralph_engine::git::{GitVersion, HostGit};

use super::request::RunRequest;
use super::source_repository::{SourceRepository, free_branch};
use super::task_file::{describe_finding, rejected};
use super::{agent_script, container, network, pinned_settings, sandbox_choice, secrets, worker};
use crate::agent::AgentAccess;
use crate::app::App;
use crate::error::AppError;
use crate::providers::Providers;
use crate::providers::models::{ModelFactory, absolute_script, agent_model_name, listed_price};

/// A plan with its task.
pub struct PlannedRun {
    pub plan: RunPlan,
    pub task: TaskFile,
    /// The model with its settings.
    pub choice: ModelChoice,
    /// The agent with its login; `None` for the engine `actions`.
    pub access: Option<AgentAccess>,
    /// Facts that the user should know before the run starts.
    pub notices: Vec<String>,
}

/// Completes the plan of a new run, and finds the agent's login. Rejects a plan that contains a secret.
pub async fn plan_run(
    request: &RunRequest,
    (file, task): (PathBuf, TaskFile),
    app: &App,
) -> Result<PlannedRun, AppError> {
    let access = worker::agent_for_run(request, &task.contract, app).await?;
    // After the login, so that the redactor knows its credential.
    let providers = app.providers()?;
    let parts = (file.as_path(), &task);
    let (plan, choice, notices) =
        complete(request, parts, access.as_ref(), (app, &providers)).await?;
    secrets::refuse_in_plan(&plan, &providers.redactor)?;
    Ok(PlannedRun {
        plan,
        task,
        choice,
        access,
        notices,
    })
}

async fn complete(
    request: &RunRequest,
    (file, task): (&Path, &TaskFile),
    access: Option<&AgentAccess>,
    (app, providers): (&App, &Providers),
) -> Result<(RunPlan, ModelChoice, Vec<String>), AppError> {
    let git = providers.git()?;
    require_git(&git).await?;
    secrets::refuse_in_task(&task.with_ticks(&BTreeSet::new()), &providers.redactor)?;
    let contract = &task.contract;
    let agent = network::agent_plan(access, request, app)?;
    let sandbox = sandbox_choice::require_known_provider(request, task, app)?;
    let (container, limits) = container::resource_plans(&sandbox, contract, app).await?;
    let provider = providers.sandbox_provider(&sandbox, container.as_ref(), limits)?;
    require_provider(&*provider).await?;
    let choice = match &agent {
        Some(agent) => ModelChoice::for_model(agent_model_name(agent)),
        None => resolve_model(request, Some(task), app, &providers.models)?,
    };
    let source = SourceRepository::find(request, task, file, &git, app).await?;
    if let Some(access) = access {
        agent_script::require_committed_script(&access.preset, &source, &git).await?;
    }
    let title = (task.title.clone()).unwrap_or_else(|| contract.task_id.to_string());
    let wanted = contract.branch(task.title.as_deref());
    let branch = free_branch(&wanted, &source.path, &git, providers).await?;
    let mut notices = source.notices(&git, file).await;
    let network = network::plan_for_run(&sandbox, access, &source, &git, app).await?;
    let (network, idle_list) = network.unzip();
    notices.extend(idle_list.flatten());
    notices.extend(access.and_then(AgentAccess::destination));
    notices.extend(secrets::unredacted_warning(&providers.redactor));
    notices.extend(sandbox_choice::weaker_sandbox_notice(
        request, contract, &sandbox,
    ));
    let plan = RunPlan {
        run: new_id(providers.clock.now()),
        task_id: contract.task_id.clone(),
        title,
        task_file: file.to_string_lossy().into_owned(),
        contract: contract::digest(task),
        repo: source.path.to_string_lossy().into_owned(),
        base_branch: source.base_branch,
        base: source.base,
        branch,
        engine: agent
            .as_ref()
            .map_or(EngineKind::Actions, |_| EngineKind::Agent),
        sandbox,
        isolation: provider.isolation(),
        local: container::local_plan(&*provider, limits),
        container,
        network,
        agent,
        model: choice.model.clone(),
        scm: "local".into(),
        delivery: delivery_for(contract),
        limits: contract.limits().changed_by(&request.limits),
        test_command: contract.test_command.clone().unwrap_or_default(),
        checkboxes: task.checkboxes.len(),
        mode: contract.mode,
        settings: Some(pinned_settings::pin_settings(app)?),
    };
    Ok((plan, choice, notices))
}

/// Returns a new id of a run. Ids of the same second differ in the milliseconds and a random part.
pub(crate) fn new_id(now: Timestamp) -> RunId {
    let millisecond = u64::from(now.subsec_millisecond().unsigned_abs());
    let last = (millisecond << 6) | (random_number() & 0x3f);
    RunId::new(now, u16::try_from(last).unwrap_or(u16::MAX))
}

/// Returns a random number.
pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the model, after checking that it is usable and determining its price.
pub(crate) fn resolve_model(
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
    models: &ModelFactory,
) -> Result<ModelChoice, AppError> {
    let (model, profile) = (request.model.as_deref(), request.profile.as_deref());
    let choice = model_choice(model, profile, task, app)?;
    if let Some(task) = task {
        require_price(&choice, task, request)?;
    }
    models.create(&choice, &[])?;
    Ok(choice)
}

async fn require_provider(provider: &dyn SandboxProvider) -> Result<(), AppError> {
    let error = AppError::combine(provider_errors(provider).await);
    error.map_or(Ok(()), Err)
}

/// Returns the reasons why a sandbox provider does not work on this machine.
pub(crate) async fn provider_errors(provider: &dyn SandboxProvider) -> Vec<AppError> {
    let error = |problem: ProviderProblem| {
        let what = format!("sandbox `{}` cannot be used", provider.name());
        AppError::runtime(what, problem.what, problem.fix)
    };
    let problems = provider.preflight().await.into_iter();
    problems.map(error).collect()
}

fn delivery_for(contract: &Contract) -> Delivery {
    if contract.pr.enabled {
        Delivery::PullRequest
    } else {
        Delivery::Branch
    }
}

/// Returns the version of git in its own words. Returns an error if it is too old.
pub async fn require_git(git: &HostGit) -> Result<String, AppError> {
    let said = git.run_as_user(Path::new("/"), &["--version"]).await;
    let said = said.map_err(|error| {
        AppError::runtime(
            "git cannot be used",
            error.to_string(),
            "install git and make sure it is on PATH",
        )
    })?;
    match GitVersion::parse(&said).filter(GitVersion::is_too_old) {
        None => Ok(said),
        Some(version) => Err(AppError::runtime(
            format!("git {version} is too old"),
            GitVersion::requirement(),
            "upgrade git",
        )),
    }
}

/// Returns the model that is named first in this order: flag, task, environment, file.
pub fn model_choice(
    model: Option<&str>,
    profile: Option<&str>,
    task: Option<&TaskFile>,
    app: &App,
) -> Result<ModelChoice, AppError> {
    let environment = app.environment();
    let profiles = app.profiles()?;
    let mut choice = if let Some(model) = model {
        ModelChoice::for_model(model)
    } else {
        let named = profile
            .or(task.and_then(|task| task.contract.model_profile_default.as_deref()))
            .or(environment.default_profile())
            .or(profiles.default_name());
        let Some(name) = named else {
            return Err(AppError::usage(
                "no model is chosen",
                "neither a flag, the task, the environment nor config/models.yaml names one",
                "use `--model` or `--profile`",
            ));
        };
        profiles.resolve(name)?.to_model_choice(name)
    };
    choice.model = absolute_script(&choice.model, environment.working_dir());
    if choice.price.is_none() {
        choice.price = listed_price(&profiles, &choice, environment)?;
    }
    Ok(choice)
}

/// Returns an error for a task whose only spending limit is a cost, if the price of the model is
/// unknown.
fn require_price(
    choice: &ModelChoice,
    task: &TaskFile,
    request: &RunRequest,
) -> Result<(), AppError> {
    let limits = task.contract.limits().changed_by(&request.limits);
    let only_money = limits.max_cost.is_some() && limits.max_tokens.is_none();
    if choice.price.is_some() || !only_money {
        return Ok(());
    }
    if request.limits.max_cost.is_some() {
        return Err(AppError::usage(
            "`--max-cost` cannot be enforced",
            format!("no price is known for model `{}`", choice.model),
            "also set `--max-tokens`, or the model's prices in config/models.yaml",
        ));
    }
    let Some(finding) = lint::unenforceable_cost_limit(task, &choice.model, choice.price.as_ref())
    else {
        return Ok(());
    };
    let file = &request.file;
    Err(rejected(file, describe_finding(&finding), vec![finding]))
}
