//! The input of the checks, read once.

use std::path::{Path, PathBuf};

use ralph_core::lint::{self, LintReport};
use ralph_core::plan::{ContainerPlan, EngineKind};
use ralph_core::task::{Contract, TaskFile};
use ralph_guest::{available, best_effort};
use ralph_providers::agent::Preset;
use ralph_providers::docker::{DockerEngine, DockerInfo};

use crate::app::App;
use crate::config::{ModelProfiles, RegularFileError, Settings};
use crate::error::AppError;
use crate::planning::{
    RunRequest, TASK_FILE, container, read_task_bytes, require_git, sandbox_choice, worker,
};
use crate::providers::Providers;

/// The named task file, or the one in the working directory.
pub(super) struct PreflightTask {
    /// The path as the user wrote it.
    pub(super) display_path: String,
    pub(super) path: PathBuf,
    /// The findings of the linter, or the reason why the file cannot be read.
    pub(super) report: Result<LintReport, RegularFileError>,
}

/// The worker of the run that would be started.
pub(super) enum PreflightWorker {
    /// A model that ralph asks directly.
    Model,
    /// A coding agent.
    Agent(Result<Preset, AppError>),
    /// The flags contradict each other.
    Contradiction(AppError),
    /// The task file names the worker but is not usable.
    Unknown,
}

impl PreflightWorker {
    fn find(request: &RunRequest, task: Option<&PreflightTask>, app: &App) -> Self {
        let contract = task
            .and_then(PreflightTask::usable)
            .map(|task| &task.contract);
        let has_flag = request.engine.is_some() || request.agent.is_some();
        if task.is_some() && contract.is_none() && !has_flag {
            return Self::Unknown;
        }
        match worker::engine(request, contract) {
            Ok(EngineKind::Actions) => Self::Model,
            Ok(EngineKind::Agent) => {
                let name = worker::agent_name(request, contract);
                Self::Agent(worker::find_preset(name, app))
            }
            Err(error) => Self::Contradiction(error),
        }
    }

    /// Returns the preset if an existing agent is the worker.
    pub(super) fn preset(&self) -> Option<&Preset> {
        match self {
            Self::Agent(Ok(preset)) => Some(preset),
            Self::Agent(Err(_)) | Self::Model | Self::Contradiction(_) | Self::Unknown => None,
        }
    }
}

/// The input of the checks.
pub(in crate::checks) struct PreflightContext<'a> {
    pub(super) app: &'a App,
    pub(super) request: RunRequest,
    pub(super) providers: Result<Providers, AppError>,
    pub(super) settings: Result<Settings, AppError>,
    pub(super) profiles: Result<ModelProfiles, AppError>,
    pub(super) task: Option<PreflightTask>,
    pub(super) worker: PreflightWorker,
    /// The output of `git --version`.
    pub(super) git: Result<String, AppError>,
    /// The name of the sandbox provider.
    pub(super) sandbox: Result<String, AppError>,
    /// The container plan, if the provider uses containers.
    pub(in crate::checks) container: Option<Result<ContainerPlan, AppError>>,
    /// The Docker Engine, if it answers.
    pub(super) engine: Option<(DockerEngine, DockerInfo)>,
}

impl<'a> PreflightContext<'a> {
    /// Reads the input of the checks. The check that uses an input reports the error of reading it.
    pub(super) async fn load(file: Option<PathBuf>, request: RunRequest, app: &'a App) -> Self {
        let task = find_task(file.as_deref(), app);
        let request = RunRequest {
            file: file.unwrap_or_else(|| TASK_FILE.into()),
            ..request
        };
        Self::with_task(task, request, app).await
    }

    /// Reads the input of the checks of a sandbox provider, without a task.
    pub(in crate::checks) async fn for_provider(name: &str, app: &'a App) -> Self {
        let request = RunRequest {
            sandbox: Some(name.to_owned()),
            ..RunRequest::for_file(TASK_FILE)
        };
        Self::with_task(None, request, app).await
    }

    async fn with_task(task: Option<PreflightTask>, request: RunRequest, app: &'a App) -> Self {
        // The check of the model reports unreadable stores.
        best_effort(app.load_model_keys().await);
        let providers = app.providers_read_only();
        let settings = app.settings();
        let usable = task.as_ref().and_then(PreflightTask::usable);
        let sandbox = sandbox_choice::provider_name(&request, usable, app);
        let container = match sandbox.as_deref() {
            Ok("docker") => {
                let contract = usable.map(|task| &task.contract);
                Some(container_plan(contract, app).await)
            }
            Ok(_) | Err(_) => None,
        };
        let engine = match &container {
            Some(Ok(plan)) => connect_engine(plan).await,
            Some(Err(_)) | None => None,
        };
        Self {
            worker: PreflightWorker::find(&request, task.as_ref(), app),
            git: require_git(&app.git_read_only()).await,
            profiles: app.profiles(),
            app,
            request,
            providers,
            settings,
            task,
            sandbox,
            container,
            engine,
        }
    }

    /// Returns the task if it can be run.
    pub(super) fn usable_task(&self) -> Option<&TaskFile> {
        self.task.as_ref().and_then(PreflightTask::usable)
    }
}

impl PreflightTask {
    fn usable(&self) -> Option<&TaskFile> {
        match &self.report {
            Ok(report) => report.task.as_ref().filter(|_| report.is_ok()),
            Err(_) => None,
        }
    }
}

/// Finds the named task file, or the default one if it exists.
fn find_task(named: Option<&Path>, app: &App) -> Option<PreflightTask> {
    let file = named.unwrap_or(Path::new(TASK_FILE));
    let path = app.environment().working_dir().join(file);
    if named.is_none() && path.symlink_metadata().is_err() {
        return None;
    }
    Some(PreflightTask {
        display_path: file.display().to_string(),
        report: read_task_bytes(file, app).map(|bytes| lint::check(&bytes)),
        path: path.canonicalize().unwrap_or(path),
    })
}

/// Returns the container plan with the image that the task asks for.
async fn container_plan(contract: Option<&Contract>, app: &App) -> Result<ContainerPlan, AppError> {
    let resources = contract.and_then(|contract| contract.sandbox_resources);
    let mut plan = container::container_plan_for(resources, app).await?;
    if let Some(image) = contract.and_then(|contract| contract.sandbox_image.as_ref()) {
        plan.image.clone_from(image);
    }
    Ok(plan)
}

/// Connects to the Docker Engine. The provider's check reports why it does not answer.
async fn connect_engine(plan: &ContainerPlan) -> Option<(DockerEngine, DockerInfo)> {
    let engine = available(DockerEngine::connect(plan.engine.as_deref()).await)?;
    let facts = available(engine.info().await)?;
    Some((engine, facts))
}
