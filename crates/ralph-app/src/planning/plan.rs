//! Completes a task file and flags to a plan, without starting or writing anything.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::id::RunId;
use ralph_core::lint;
use ralph_core::plan::{AgentPlan, Delivery, RunPlan};
use ralph_core::ports::{ProviderProblem, SandboxProvider};
use ralph_core::profile::ModelChoice;
use ralph_core::task::{Contract, TaskFile};
use ralph_engine::contract;
use ralph_engine::git::{GitVersion, HostGit};

use super::request::RunRequest;
use super::source_repository::{SourceRepository, free_branch};
use super::task_file::{describe_finding, rejected};
use super::{
    agent_script, container, fallback_agent, host_checks, network, pinned_settings, sandbox_choice,
    secrets, setup, worker,
};
use crate::agent::AgentAccess;
use crate::app::App;
use crate::error::AppError;
use crate::providers::models::{ModelFactory, absolute_script, agent_model_name, listed_price};
use crate::providers::{Providers, RemoteSource};

/// The use of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanPurpose {
    /// A run starts with it, so everything that the run needs must exist.
    Start,
    /// It is only shown: a missing login, key, model or container engine does not prevent it.
    Preview,
}

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
    /// `None` for a repository on this machine.
    pub remote: Option<RemoteSource>,
    /// The specification of an issue.
    pub spec: Option<String>,
}

/// Completes the plan of a new run, and finds the agent's login. Rejects a plan that contains a secret.
pub async fn plan_run(
    request: &RunRequest,
    (file, task): (PathBuf, TaskFile),
    app: &App,
    purpose: PlanPurpose,
) -> Result<PlannedRun, AppError> {
    let access = worker::agent_for_run(request, &task.contract, app, purpose).await?;
    app.load_model_keys().await?;
    // After the login, so that the redactor knows its credential.
    let providers = app.providers()?;
    let git = providers.git()?;
    let app = (app, &providers, &git);
    plan_with(request, (file, task), access, app, purpose).await
}

/// Completes a plan that is only checked, without creating the state directory.
pub(crate) async fn preview_read_only(
    request: &RunRequest,
    (file, task): (PathBuf, TaskFile),
    app: &App,
) -> Result<PlannedRun, AppError> {
    let purpose = PlanPurpose::Preview;
    let access = worker::agent_for_run(request, &task.contract, app, purpose).await?;
    let providers = app.providers_read_only()?;
    let app = (app, &providers, &app.git_read_only());
    plan_with(request, (file, task), access, app, purpose).await
}

async fn plan_with(
    request: &RunRequest,
    (file, task): (PathBuf, TaskFile),
    access: Option<AgentAccess>,
    (app, providers, git): (&App, &Providers, &HostGit),
    purpose: PlanPurpose,
) -> Result<PlannedRun, AppError> {
    let parts = (file.as_path(), &task);
    let (plan, choice, notices, remote) = complete(
        request,
        parts,
        access.as_ref(),
        (app, providers, git),
        purpose,
    )
    .await?;
    host_checks::require_usable(&task.contract, &plan)?;
    secrets::refuse_in_plan(&plan, &providers.redactor)?;
    Ok(PlannedRun {
        plan,
        remote,
        task,
        choice,
        access,
        notices,
        spec: request.issue.as_ref().map(|issue| issue.spec.clone()),
    })
}

/// A plan with its model, the notices, and the facts of a source host.
type CompletedPlan = (RunPlan, ModelChoice, Vec<String>, Option<RemoteSource>);

async fn complete(
    request: &RunRequest,
    (file, task): (&Path, &TaskFile),
    access: Option<&AgentAccess>,
    (app, providers, git): (&App, &Providers, &HostGit),
    purpose: PlanPurpose,
) -> Result<CompletedPlan, AppError> {
    require_git(git).await?;
    refuse_secrets(request, task, providers)?;
    let contract = &task.contract;
    let agent = network::agent_plan(access, request, app)?;
    let sandbox = sandbox_choice::require_known_provider(request, task, app)?;
    let (container, limits) = container::resource_plans(&sandbox, contract, app, purpose).await?;
    let provider = providers.sandbox_provider(&sandbox, container.as_ref(), limits)?;
    require_sandbox(request, task, &*provider, app, purpose).await?;
    let choice = model_for_plan(request, task, agent.as_ref(), (app, providers), purpose)?;
    fallback_agent::require_common_image(access, container.as_ref())?;
    let source = find_source(request, (file, task), access, (git, app), purpose).await?;
    let branch = branch_for_run(task, &source, git, (app, providers)).await?;
    let source_host = source.remote.as_ref();
    let network = network::plan_for_run(&sandbox, access, &source, git, app);
    let (network, unused_list_notice) = network.await?.unzip();
    let setup = setup::plan_setup(contract, &source, network.as_ref(), git, app).await?;
    let mut notices = source.notices(git, file).await;
    let submodules = source.readable_submodules(git).await;
    notices.extend(access_notices(access));
    let others = [
        unused_list_notice.flatten(),
        secrets::unredacted_warning(&providers.redactor),
        sandbox_choice::weaker_sandbox_notice(request, contract, &sandbox),
    ];
    notices.extend(others.into_iter().flatten().chain(setup.notices));
    let plan = RunPlan {
        run: new_id(providers.clock.now()),
        task_id: contract.task_id.clone(),
        title: (task.title.clone()).unwrap_or_else(|| contract.task_id.to_string()),
        task_file: file.to_string_lossy().into_owned(),
        contract: contract::digest(task),
        repo: source.location(),
        base_branch: source.base_branch,
        base: source.base,
        branch,
        engine: worker::engine(request, Some(contract))?,
        sandbox,
        isolation: provider.isolation(),
        local: container::local_plan(&*provider, limits),
        container,
        network,
        agent,
        model: choice.model.clone(),
        model_key: (providers.models.key_status(&choice)).and_then(|status| status.found_in),
        scm: source_host.map_or("local", |remote| remote.scm).to_owned(),
        scm_credential: source_host.and_then(|remote| remote.credential.clone()),
        submodules,
        delivery: delivery_for(contract),
        limits: contract.limits().changed_by(&request.limits),
        setup: setup.plan,
        test_command: contract.test_command.clone().unwrap_or_default(),
        checkboxes: task.checkboxes.len(),
        mode: contract.mode,
        settings: Some(pinned_settings::pin_settings(app)?),
        issue: request.issue.as_ref().map(|issue| issue.plan.clone()),
    };
    Ok((plan, choice, notices, source.remote))
}

/// Rejects a start with a sandbox that the user has not chosen, or whose provider cannot be used.
async fn require_sandbox(
    request: &RunRequest,
    task: &TaskFile,
    provider: &dyn SandboxProvider,
    app: &App,
    purpose: PlanPurpose,
) -> Result<(), AppError> {
    if purpose != PlanPurpose::Start {
        return Ok(());
    }
    sandbox_choice::require_user_choice(request, Some(task), app)?;
    require_provider(provider).await
}

fn refuse_secrets(
    request: &RunRequest,
    task: &TaskFile,
    providers: &Providers,
) -> Result<(), AppError> {
    secrets::refuse_in_task(&task.with_ticks(&BTreeSet::new()), &providers.redactor)?;
    match &request.issue {
        Some(issue) => secrets::refuse_in_task(&issue.spec, &providers.redactor),
        None => Ok(()),
    }
}

/// Returns the repository of a run, after checking that it can be used.
async fn find_source(
    request: &RunRequest,
    (file, task): (&Path, &TaskFile),
    access: Option<&AgentAccess>,
    (git, app): (&HostGit, &App),
    purpose: PlanPurpose,
) -> Result<SourceRepository, AppError> {
    let source = SourceRepository::find(request, task, file, git, app).await?;
    require_usable(&source, purpose)?;
    require_agent_script(access, &source, git, purpose).await?;
    Ok(source)
}

/// Returns the destinations of the credentials of the agent and its fallback.
fn access_notices(access: Option<&AgentAccess>) -> Vec<String> {
    let agents = access.into_iter().flat_map(AgentAccess::with_fallback);
    agents.filter_map(AgentAccess::destination).collect()
}

/// Rejects a start with a repository that its source host does not permit to use.
fn require_usable(source: &SourceRepository, purpose: PlanPurpose) -> Result<(), AppError> {
    let problems = source.remote.iter().flat_map(|remote| &remote.problems);
    match AppError::combine(problems.cloned()) {
        Some(error) if purpose == PlanPurpose::Start => Err(error),
        Some(_) | None => Ok(()),
    }
}

/// Rejects a start with an agent whose script is not committed.
async fn require_agent_script(
    access: Option<&AgentAccess>,
    source: &SourceRepository,
    git: &HostGit,
    purpose: PlanPurpose,
) -> Result<(), AppError> {
    match access {
        Some(access) if purpose == PlanPurpose::Start => {
            for access in access.with_fallback() {
                agent_script::require_committed_script(&access.preset, source, git).await?;
            }
            Ok(())
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns a branch for the task that does not exist yet.
async fn branch_for_run(
    task: &TaskFile,
    source: &SourceRepository,
    git: &HostGit,
    (app, providers): (&App, &Providers),
) -> Result<String, AppError> {
    let wanted = task.contract.branch(task.title.as_deref());
    let repo = source.location();
    let taken = source.remote.as_ref().map(|remote| remote.taken.as_slice());
    let branch = free_branch(&wanted, (&repo, taken), git, providers).await?;
    require_unprotected(&branch, app)?;
    Ok(branch)
}

/// Rejects a branch that the settings protect.
fn require_unprotected(branch: &str, app: &App) -> Result<(), AppError> {
    let git = app.settings()?.git;
    let Some(pattern) = git.protecting(branch) else {
        return Ok(());
    };
    Err(AppError::usage(
        format!("branch `{branch}` is protected"),
        format!("`git.protected_branches` has `{pattern}`, and a run pushes to its branch"),
        "choose another `target_branch_prefix` or `target_branch_slug` in the task file",
    ))
}

/// Rejects an unknown fallback profile of the environment, if the task names none.
fn require_fallback_profile(contract: &Contract, app: &App) -> Result<(), AppError> {
    match app.environment().fallback_profile() {
        Some(name) if contract.model_profile_fallback.is_none() => {
            app.profiles()?.resolve(name).map(drop).map_err(|error| {
                let error = AppError::from(error);
                AppError {
                    what: format!("RALPH_FALLBACK_MODEL_PROFILE: {}", error.what),
                    ..error
                }
            })
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns a new id of a run. Its suffix combines the millisecond with random bits, so that ids of
/// the same second usually differ.
pub(crate) fn new_id(now: Timestamp) -> RunId {
    let millisecond = u64::from(now.subsec_millisecond().unsigned_abs());
    let last = (millisecond << 6) | (random_number() & 0x3f);
    RunId::new(now, u16::try_from(last).unwrap_or(u16::MAX))
}

/// Returns a random number.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the model of a request, after checking that it can be used and that the cost limit of the
/// task can be enforced.
pub(crate) fn resolve_model(
    request: &RunRequest,
    task: Option<&TaskFile>,
    app: &App,
    models: &ModelFactory,
) -> Result<ModelChoice, AppError> {
    let (model, profile) = (request.model.as_deref(), request.profile.as_deref());
    let choice = model_choice(model, profile, task, app)?;
    if let Some(task) = task {
        require_fallback_profile(&task.contract, app)?;
        require_price(&choice, task, request)?;
    }
    models.create(&choice, &[])?;
    Ok(choice)
}

/// Returns the model of a plan; an agent's own has only a name.
fn model_for_plan(
    request: &RunRequest,
    task: &TaskFile,
    agent: Option<&AgentPlan>,
    (app, providers): (&App, &Providers),
    purpose: PlanPurpose,
) -> Result<ModelChoice, AppError> {
    match (agent, purpose) {
        (Some(agent), _) => Ok(ModelChoice::for_model(agent_model_name(agent))),
        (None, PlanPurpose::Start) => resolve_model(request, Some(task), app, &providers.models),
        (None, PlanPurpose::Preview) => preview_model(request, task, app),
    }
}

/// Returns the model for a plan that is only shown. Its key need not exist, and `unknown` stands for
/// a model that nothing names.
fn preview_model(
    request: &RunRequest,
    task: &TaskFile,
    app: &App,
) -> Result<ModelChoice, AppError> {
    let (model, profile) = (request.model.as_deref(), request.profile.as_deref());
    match model_choice(model, profile, Some(task), app) {
        Ok(choice) => {
            require_price(&choice, task, request)?;
            Ok(choice)
        }
        Err(error) => {
            tracing::debug!(%error, "the plan has no model");
            Ok(ModelChoice::for_model("unknown"))
        }
    }
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

/// Returns the output of `git --version`, or an error if git cannot be run or is too old.
pub async fn require_git(git: &HostGit) -> Result<String, AppError> {
    let output = git.run_as_user(Path::new("/"), &["--version"]).await;
    let output = output.map_err(|error| {
        AppError::runtime(
            "git cannot be used",
            error.to_string(),
            "install git and make sure it is on PATH",
        )
    })?;
    match GitVersion::parse(&output).filter(GitVersion::is_too_old) {
        None => Ok(output),
        Some(version) => Err(AppError::runtime(
            format!("git {version} is too old"),
            GitVersion::requirement(),
            "upgrade git",
        )),
    }
}

/// Returns the model from the first of these that names one: flag, task, environment, file.
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
