//! What the checks look at, read once.

use std::path::{Path, PathBuf};

use ralph_core::lint::{self, LintReport};
use ralph_core::plan::{ContainerPlan, EngineKind as Who};
use ralph_core::task::{Contract, TaskFile};
use ralph_providers::agent::Preset;
use ralph_providers::docker::{DockerEngine, DockerInfo};

use crate::cli::args::{RunArgs, TASK_FILE, UnfinishedRunArgs};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::maintenance_args::PreflightArgs;
use crate::cli::{agent, container, lint as lint_command, planning, sandbox_choice};
use crate::config::{ModelProfiles, RegularFileError, Settings};
use crate::providers::Providers;

/// A task file that was named, or that is in the working directory.
pub(super) struct PreflightTask {
    /// As it was named.
    pub(super) display_path: String,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What there is to say about it, or why it cannot be read.
    pub(super) report: Result<LintReport, RegularFileError>,
}

/// Who does the work of the run that would be started.
pub(super) enum PreflightWorker {
    /// A model that ralph asks itself.
    Model,
    /// An agent's program.
    Agent(Result<Preset, CliError>),
    /// The flags contradict each other.
    Contradiction(CliError),
    /// The task file says it, and cannot be used.
    Unknown,
}

impl PreflightWorker {
    fn find(args: &RunArgs, task: Option<&PreflightTask>, context: &Context) -> Self {
        let contract = task
            .and_then(PreflightTask::usable)
            .map(|task| &task.contract);
        let is_said = args.engine.is_some() || args.agent.is_some();
        if task.is_some() && contract.is_none() && !is_said {
            return Self::Unknown;
        }
        match agent::engine(args, contract) {
            Ok(Who::Actions) => Self::Model,
            Ok(Who::Agent) => {
                let name = agent::agent_name(args, contract);
                Self::Agent(agent::find_preset(name, context))
            }
            Err(error) => Self::Contradiction(error),
        }
    }

    /// Returns the agent, if one that there is does the work.
    pub(super) fn preset(&self) -> Option<&Preset> {
        match self {
            Self::Agent(Ok(preset)) => Some(preset),
            Self::Agent(Err(_)) | Self::Model | Self::Contradiction(_) | Self::Unknown => None,
        }
    }
}

/// What the checks look at.
pub(super) struct PreflightContext<'a> {
    pub(super) context: &'a Context,
    /// The run that would be started.
    pub(super) args: RunArgs,
    pub(super) providers: Result<Providers, CliError>,
    pub(super) settings: Result<Settings, CliError>,
    pub(super) profiles: Result<ModelProfiles, CliError>,
    pub(super) task: Option<PreflightTask>,
    /// Who does the work.
    pub(super) worker: PreflightWorker,
    /// What git says about its version.
    pub(super) git: Result<String, CliError>,
    /// The name of the sandbox provider.
    pub(super) sandbox: Result<String, CliError>,
    /// The containers, where the provider has containers.
    pub(super) container: Option<Result<ContainerPlan, CliError>>,
    /// The engine of the containers, if it answers.
    pub(super) engine: Option<(DockerEngine, DockerInfo)>,
}

impl<'a> PreflightContext<'a> {
    /// Reads everything that the checks look at. What cannot be read is told by the check it belongs to.
    pub(super) async fn load(args: PreflightArgs, context: &'a Context) -> Self {
        let task = find_task(args.file.as_deref(), context);
        let args = run_args(args);
        let wiring = context.providers_read_only();
        let settings = context.settings();
        let usable = task.as_ref().and_then(PreflightTask::usable);
        let sandbox = sandbox_choice::provider_name(&args, usable, context);
        let container = match sandbox.as_deref() {
            Ok("docker") => {
                let contract = usable.map(|task| &task.contract);
                Some(container_plan(contract, context).await)
            }
            Ok(_) | Err(_) => None,
        };
        let engine = match &container {
            Some(Ok(plan)) => connect_engine(plan).await,
            Some(Err(_)) | None => None,
        };
        Self {
            worker: PreflightWorker::find(&args, task.as_ref(), context),
            git: planning::require_git(&context.git_read_only()).await,
            profiles: context.profiles(),
            context,
            args,
            providers: wiring,
            settings,
            task,
            sandbox,
            container,
            engine,
        }
    }

    /// Returns the task, if it can be run.
    pub(super) fn usable_task(&self) -> Option<&TaskFile> {
        self.task.as_ref().and_then(PreflightTask::usable)
    }
}

impl PreflightTask {
    fn usable(&self) -> Option<&TaskFile> {
        let report = self.report.as_ref().ok()?;
        report.task.as_ref().filter(|_| report.is_ok())
    }
}

/// Finds the task file: the one that was named, or else the usual one if it is there.
fn find_task(named: Option<&Path>, context: &Context) -> Option<PreflightTask> {
    let file = named.unwrap_or(Path::new(TASK_FILE));
    let path = context.environment().working_dir().join(file);
    if named.is_none() && path.symlink_metadata().is_err() {
        return None;
    }
    Some(PreflightTask {
        display_path: file.display().to_string(),
        report: lint_command::read_task_bytes(file, context).map(|bytes| lint::check(&bytes)),
        path: path.canonicalize().unwrap_or(path),
    })
}

fn run_args(args: PreflightArgs) -> RunArgs {
    RunArgs {
        file: args.file.unwrap_or_else(|| TASK_FILE.into()),
        repo: args.repo,
        sandbox: args.sandbox,
        engine: args.engine,
        agent: args.agent,
        profile: args.profile,
        model: args.model,
        rebuild: false,
        dry_run: true,
        json: args.json,
        again: UnfinishedRunArgs {
            new: true,
            resume: false,
        },
    }
}

/// Returns what the containers are like, with the image that the task asks for.
async fn container_plan(
    contract: Option<&Contract>,
    context: &Context,
) -> Result<ContainerPlan, CliError> {
    let resources = contract.and_then(|contract| contract.sandbox_resources);
    let mut plan = container::container_plan_for(resources, context).await?;
    if let Some(image) = contract.and_then(|contract| contract.sandbox_image.as_ref()) {
        plan.image.clone_from(image);
    }
    Ok(plan)
}

/// Speaks to the engine. Why one does not answer is told by the provider.
async fn connect_engine(plan: &ContainerPlan) -> Option<(DockerEngine, DockerInfo)> {
    let engine = DockerEngine::connect(plan.engine.as_deref()).await.ok()?;
    let facts = engine.info().await.ok()?;
    Some((engine, facts))
}
