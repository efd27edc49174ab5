//! The only module that names concrete providers; those of models are in [`models`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ralph_core::plan::{ContainerPlan, PinnedSettings, RunPlan};
use ralph_core::ports::{Clock, Model, PullRequest, SandboxProvider, Scm};
use ralph_core::price::Price;
use ralph_core::profile::ModelChoice;
use ralph_core::repo_address::RemoteRepo;
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;
use ralph_engine::git::{HostGit, RepositoryMirror};
use ralph_engine::run::{ProfileSelector, Services};
use ralph_engine::store::StateDir;
use ralph_providers::docker::images::DockerImages;
use ralph_providers::docker::{DockerEngine, DockerError};
use ralph_providers::model::AbsentModel;
use ralph_providers::sandbox::{DockerLimits, DockerProvider, DockerSettings, LocalProvider};
use ralph_providers::scm::github::{GitHubClient, GitHubConnection, GitHubCredential, GitHubHost};
use ralph_providers::scm::{GitProgram, LocalScm};

use crate::error::AppError;
use crate::telemetry::WorkCounters;
use crate::tokens::stores::{Keychain, SecretTool, TokenStore, find_program};

mod absent_scm;
pub mod gate_setup;
mod git_reading;
pub mod model_keys;
pub mod models;
mod open_sandboxes;
mod source_connections;

pub use absent_scm::AbsentScm;
use gate_setup::GateSetup;
use models::ModelFactory;
pub use open_sandboxes::OpenSandboxes;
use open_sandboxes::SharingProvider;
pub use source_connections::{RemoteSource, SourceConnection, SourceConnections};

/// The factory of the concrete providers.
pub struct Providers {
    pub state: StateDir,
    /// The `PATH` for finding programs.
    pub search_path: String,
    pub home: Option<PathBuf>,
    /// The user's configuration directory.
    pub config: Option<PathBuf>,
    /// Variables with the locations of toolchains.
    pub toolchains: BTreeMap<String, String>,
    pub models: ModelFactory,
    pub clock: Arc<dyn Clock>,
    pub redactor: Redactor,
    /// The open connections to source hosts.
    pub connections: Arc<SourceConnections>,
    /// The sandboxes that runs of this process work in.
    pub open_sandboxes: Arc<OpenSandboxes>,
    /// The counters of this process.
    pub counters: Arc<WorkCounters>,
}

/// The images of container sandboxes.
pub use ralph_providers::docker::images as image;
/// Downloads of files that the user names by URL.
pub use ralph_providers::download;
/// The limits of commands in a local sandbox.
pub use ralph_providers::sandbox::LocalLimits;
pub use ralph_providers::scm::PullRecord;

/// The client of GitHub's API.
pub use ralph_providers::scm::github;

/// A sandbox provider whose sandboxes can be tested and pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalOrDocker {
    /// Directories and processes on this machine.
    Local,
    /// Containers of a Docker Engine.
    Docker,
}

/// The names of the sandbox providers.
pub const SANDBOX_PROVIDERS: [&str; 2] = ["local", "docker"];

impl Providers {
    /// Returns the host's git.
    pub fn git(&self) -> Result<HostGit, AppError> {
        let config = self.state.root().join("git/.gitconfig");
        let git = HostGit::new(&self.search_path, config, self.home.clone())?;
        Ok(git.with_own_repositories(self.state.mirrors()))
    }

    /// Returns a sandbox provider by name.
    pub fn sandbox_provider(
        &self,
        name: &str,
        container: Option<&ContainerPlan>,
        limits: LocalLimits,
    ) -> Result<Arc<dyn SandboxProvider>, AppError> {
        match name {
            "local" => Ok(self.local_provider(limits)),
            "docker" => Ok(Arc::new(self.docker_provider(container))),
            other => Err(AppError::usage(
                format!("sandbox `{other}` is not available"),
                format!("this version supports {}", SANDBOX_PROVIDERS.join(", ")),
                "choose one of these with `--sandbox`, or with `sandbox_provider` in the task file",
            )),
        }
    }

    /// Returns the sandbox provider of a planned run.
    pub fn sandbox_provider_for(
        &self,
        plan: &RunPlan,
    ) -> Result<Arc<dyn SandboxProvider>, AppError> {
        self.sandbox_provider(&plan.sandbox, plan.container.as_ref(), local_limits(plan))
    }

    /// Returns the provider of local sandboxes. Their commands can access neither the state directory
    /// nor the user's configuration, which determines the destinations of credentials.
    pub fn local_provider(&self, limits: LocalLimits) -> Arc<dyn SandboxProvider> {
        Arc::new(self.local_sandboxes(limits))
    }

    fn local_sandboxes(&self, limits: LocalLimits) -> LocalProvider {
        let mut provider = LocalProvider::new(self.state.sandboxes(), &self.search_path)
            .with_toolchains(self.toolchains.clone())
            .hiding(self.state.root())
            .with_limits(limits);
        if let Some(config) = &self.config {
            // Only an existing directory can be hidden; a command could create a missing one.
            if let Err(error) = std::fs::create_dir_all(config) {
                tracing::warn!(%error, path = %config.display(), "cannot create the configuration directory");
            }
            provider = provider.hiding(config);
        }
        provider
    }

    /// Returns the sandbox provider of the Docker Engine at `engine`, in the format of `DOCKER_HOST`.
    /// It can list and remove sandboxes, but not create them.
    pub fn docker_provider_at(&self, engine: Option<String>) -> DockerProvider {
        let mut settings = DockerSettings::new("", self.state.root());
        settings.host = engine;
        DockerProvider::new(settings)
    }

    /// Returns the sandbox provider of the Docker Engine at `engine` that creates containers from an
    /// image.
    pub fn docker_provider_with_image(
        &self,
        engine: Option<String>,
        image: String,
    ) -> DockerProvider {
        let mut settings = DockerSettings::new(image, self.state.root());
        settings.host = engine;
        DockerProvider::new(settings)
    }

    /// Returns the Docker sandbox provider of a plan. Without a plan it has no image and cannot create
    /// sandboxes.
    pub fn docker_provider(&self, container: Option<&ContainerPlan>) -> DockerProvider {
        let mut settings = DockerSettings::new("", self.state.root());
        if let Some(plan) = container {
            settings.host.clone_from(&plan.engine);
            settings.image.clone_from(&plan.image);
            settings.read_only = plan.read_only;
            settings.limits = DockerLimits {
                cpus: plan.millicpus.map(|number| f64::from(number) / 1000.0),
                memory: plan.memory,
                disk: plan.disk,
                processes: plan.processes,
            };
        }
        DockerProvider::new(settings)
    }

    /// Returns the images of the Docker Engine at `host`, in the format of `DOCKER_HOST`.
    pub async fn images(&self, host: Option<&str>) -> Result<DockerImages, DockerError> {
        let engine = DockerEngine::connect(host).await?;
        let directory = self.state.root().join("images");
        Ok(DockerImages::new(engine, directory, self.clock.clone()))
    }

    /// Returns the external services of a new run.
    pub fn services(
        &self,
        plan: &RunPlan,
        choice: &ModelChoice,
        gate_setup: GateSetup,
    ) -> Result<Services, AppError> {
        let model = self.models.create(choice, &[])?;
        self.services_with_model(plan, (model, models::price_or_highest(choice)), gate_setup)
    }

    /// Returns the services of an existing run. If the run is about to switch to another profile, its
    /// current model need not be usable.
    pub fn services_for_existing(
        &self,
        (plan, state): (&RunPlan, &RunState),
        gate_setup: GateSetup,
    ) -> Result<Services, AppError> {
        let choice = &state.model_choice();
        let model = self.models.create(choice, &state.used_script_lines);
        let model = match (model, &state.wanted_profile) {
            (Ok(model), _) => model,
            (Err(error), Some(profile)) => {
                tracing::info!(%error, profile, "cannot create the current model; the run switches to another profile");
                Arc::new(AbsentModel::new(&choice.model))
            }
            (Err(error), None) => return Err(error),
        };
        self.services_with_model(plan, (model, models::price_or_highest(choice)), gate_setup)
    }

    /// Returns the services for a command that never calls the model: neither its script nor its
    /// key has to exist.
    pub fn services_without_model(&self, plan: &RunPlan) -> Result<Services, AppError> {
        let choice = ModelChoice::for_model(&plan.model);
        let model = Arc::new(AbsentModel::new(&plan.model));
        let price = models::price_or_highest(&choice);
        self.services_with_model(plan, (model, price), GateSetup::default())
    }

    fn services_with_model(
        &self,
        plan: &RunPlan,
        (model, price): (Arc<dyn Model>, Price),
        gate_setup: GateSetup,
    ) -> Result<Services, AppError> {
        let settings = plan.settings.clone().unwrap_or_default();
        let (scm, host) = self.source_host(plan)?;
        let sandboxes: Arc<dyn SandboxProvider> = match gate_setup.egress {
            Some(egress) if plan.sandbox == "docker" => {
                let docker = self.docker_provider(plan.container.as_ref());
                Arc::new(docker.with_egress(egress))
            }
            Some(_) | None if plan.sandbox == "local" => {
                let local = self.local_sandboxes(local_limits(plan));
                Arc::new(local.with_variables(gate_setup.environment))
            }
            Some(_) | None => self.sandbox_provider_for(plan)?,
        };
        Ok(Services {
            sandboxes: Arc::new(SharingProvider {
                provider: sandboxes,
                open: self.open_sandboxes.clone(),
            }),
            model,
            price,
            outage: settings.outage,
            profiles: self.profiles(settings),
            agent: gate_setup.agent,
            fallback_agent: gate_setup.fallback_agent,
            gate: gate_setup.gate,
            scm,
            git: host,
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
            worker: None,
        })
    }

    /// Returns the source host of a plan's repository, and the git that contacts it. The connection to
    /// a host on the network was opened before.
    pub fn source_host(&self, plan: &RunPlan) -> Result<(Arc<dyn Scm>, HostGit), AppError> {
        let git = self.git()?;
        let Some(repo) = plan.remote_repository() else {
            return Ok((Arc::new(self.local_scm(plan)?), git));
        };
        if let Some(connection) = self.connections.get(&repo) {
            return Ok((connection.scm, git.with_remote(connection.transport)));
        }
        let message = "this command does not contact the source host".to_owned();
        Ok((Arc::new(AbsentScm::new(&repo, message)), git))
    }

    /// Returns the repository that has the files of a plan's base commit: that of the user, or the
    /// mirror of one on a source host.
    pub fn base_repository(&self, plan: &RunPlan) -> Result<PathBuf, AppError> {
        if plan.remote_repository().is_none() {
            return Ok(PathBuf::from(&plan.repo));
        }
        let (git, mirrors) = (self.git()?, self.state.mirrors());
        let mirror = RepositoryMirror::new(&git, &mirrors, &plan.repo, &plan.base);
        Ok(mirror.path().to_owned())
    }

    /// Returns the host of a plan's repository on this machine.
    pub fn local_scm(&self, plan: &RunPlan) -> Result<LocalScm, AppError> {
        let host = self.git()?;
        let (program, config) = host.program();
        let git = GitProgram {
            program: program.to_owned(),
            path: self.search_path.clone().into(),
            config: config.to_owned(),
        };
        let repo = Path::new(&plan.repo);
        LocalScm::new(&self.state.pulls(), repo, git, self.clock.clone()).map_err(|error| {
            AppError::runtime(
                format!("cannot use the repository `{}`", plan.repo),
                error.to_string(),
                "look at the path, then try again",
            )
        })
    }

    /// Reads the record of a pull request on this machine.
    pub fn pull_record(&self, pull: &PullRequest) -> Result<PullRecord, AppError> {
        let unreadable = |why: String| {
            AppError::runtime(
                format!("cannot read pull request #{}", pull.number),
                why,
                "restore the file from a backup",
            )
        };
        let path = LocalScm::record_path(&pull.url)
            .ok_or_else(|| unreadable(format!("`{}` is not a file", pull.url)))?;
        LocalScm::read_record(&path).map_err(|error| unreadable(error.to_string()))
    }

    /// Returns the profiles that a run can switch to while it is active.
    fn profiles(&self, settings: PinnedSettings) -> ProfileSelector {
        let models = self.models.clone();
        ProfileSelector {
            doctor: settings.doctor_profile.clone(),
            fallback: settings.fallback_profile.clone(),
            choose: Arc::new(move |name| {
                let chosen = models.for_pinned_profile(name, &settings);
                chosen.map_err(|error| format!("{}, {}", error.what, error.why))
            }),
        }
    }
}

fn local_limits(plan: &RunPlan) -> LocalLimits {
    plan.local
        .map_or_else(LocalLimits::default, |local| LocalLimits {
            memory: local.memory,
            processes: local.processes,
        })
}

/// Returns the keyring of this machine, if it has one.
pub fn keyring(search_path: &str) -> Option<Box<dyn TokenStore>> {
    if cfg!(target_os = "macos") {
        keychain(search_path)
    } else {
        secret_tool(search_path)
    }
}

/// Returns the client of a repository on GitHub.
pub fn github_client(
    connection: GitHubConnection<'_>,
    credential: GitHubCredential,
    repo: RemoteRepo,
) -> Result<GitHubClient, AppError> {
    GitHubClient::new(connection, credential, repo).map_err(|error| {
        AppError::usage(
            error.to_string(),
            "the client of GitHub uses it",
            "correct `HTTPS_PROXY` or `HTTP_PROXY`",
        )
    })
}

/// Returns the source host of a repository on GitHub.
pub fn github_host(
    connection: GitHubConnection<'_>,
    credential: GitHubCredential,
    repo: RemoteRepo,
) -> Result<GitHubHost, AppError> {
    let remote = repo.git_url();
    let client = github_client(connection, credential, repo)?;
    Ok(GitHubHost::new(client, remote))
}

/// Returns the macOS keychain, if its program exists.
pub fn keychain(search_path: &str) -> Option<Box<dyn TokenStore>> {
    let program = find_program(search_path, "security")?;
    Some(Box::new(Keychain::new(program, search_path)))
}

/// Returns the Linux keyring, if its program exists.
pub fn secret_tool(search_path: &str) -> Option<Box<dyn TokenStore>> {
    let program = find_program(search_path, "secret-tool")?;
    Some(Box::new(SecretTool::new(program, search_path)))
}
