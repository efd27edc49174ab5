//! The entry point of the application layer. Files are read only when they are needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ralph_core::ports::Clock;
use ralph_core::secret::{Redactor, Secret};
use ralph_engine::git::HostGit;
use ralph_engine::journal::{self, WorkingRepository};
use ralph_engine::store::{RunDir, StateDir};
use ralph_providers::agent::Agents;

use crate::clock::ProcessClock;
use crate::clone_origin::clone_origin;
use crate::config::{
    ConfigLayers, Environment, ModelProfiles, Settings, load_agents, load_profiles, load_settings,
};
use crate::error::AppError;
use crate::providers::model_keys::StoredModelKeys;
use crate::providers::models::{ModelFactory, proxy_settings};
use crate::providers::{self, OpenSandboxes, Providers, SourceConnections};
use crate::telemetry::Telemetry;
use crate::telemetry::otlp::{MetricReader, OtlpExporter, OtlpSettings};
use crate::tokens::{StoreSelection, TokenSources, TokenStorage};
use crate::typed_hosts::TypedHosts;

/// The search path for programs if the environment sets none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The shared context of all operations: the environment, the clock and the secrets found since the
/// start.
#[derive(Debug)]
pub struct App {
    environment: Environment,
    clock: ProcessClock,
    redactor: Redactor,
    /// The stored credentials that models use; all contexts share them.
    model_keys: Arc<OnceLock<StoredModelKeys>>,
    /// The open connections to source hosts.
    source_connections: Arc<SourceConnections>,
    /// The sandboxes that runs of this process work in; all contexts share them.
    open_sandboxes: Arc<OpenSandboxes>,
    /// The source hosts that the user named on the command line; all contexts share them.
    typed_hosts: Arc<TypedHosts>,
    /// Counts and exports the work of this process; all contexts share it.
    telemetry: Arc<Telemetry>,
}

impl App {
    /// Creates the context from the environment.
    pub fn new(environment: Environment) -> Self {
        let secrets = environment.secrets().into_iter();
        let secrets = secrets.map(|(name, value)| (name, Secret::new(value)));
        Self {
            redactor: Redactor::new(secrets.collect()),
            environment,
            clock: ProcessClock::default(),
            model_keys: Arc::default(),
            source_connections: Arc::default(),
            open_sandboxes: Arc::default(),
            typed_hosts: Arc::default(),
            telemetry: Arc::default(),
        }
    }

    /// Returns the context of another working directory. Both contexts share the redactor.
    #[must_use]
    pub fn in_directory(&self, directory: &Path) -> Self {
        let app = self.with_environment(self.environment.in_directory(directory));
        for (name, value) in app.environment.secrets() {
            app.redactor.learn(&name, Secret::new(value));
        }
        app
    }

    /// Returns the context of another state directory. Both contexts share the redactor.
    #[must_use]
    pub fn with_state_dir(&self, directory: &str) -> Self {
        self.with_environment(self.environment.with_state_dir(directory))
    }

    fn with_environment(&self, environment: Environment) -> Self {
        Self {
            environment,
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
            model_keys: self.model_keys.clone(),
            // The `.env` of the other directory may have another credential.
            source_connections: Arc::new(self.source_connections.with_same_pace()),
            open_sandboxes: self.open_sandboxes.clone(),
            typed_hosts: self.typed_hosts.clone(),
            telemetry: self.telemetry.clone(),
        }
    }

    /// Replaces the machine's clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock: ProcessClock::new(clock),
            ..self
        }
    }

    /// Returns the environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the clock, by default that of the machine.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.get()
    }

    /// Returns the source hosts that the user named on the command line.
    pub fn typed_hosts(&self) -> &TypedHosts {
        &self.typed_hosts
    }

    /// Returns the telemetry of this process.
    pub fn telemetry(&self) -> Arc<Telemetry> {
        self.telemetry.clone()
    }

    /// Starts the export of telemetry if the environment names a collector. `metrics` returns the metrics to export;
    /// the default is the counters of this process. Later calls have no effect.
    pub fn start_export(&self, metrics: Option<MetricReader>) -> Result<(), AppError> {
        if self.telemetry.exporter().is_some() {
            return Ok(());
        }
        let network = proxy_settings(&self.environment);
        let Some(settings) = OtlpSettings::from_environment(&self.environment, network)? else {
            return Ok(());
        };
        for (_, value) in &settings.headers {
            self.add_secret("OTEL_EXPORTER_OTLP_HEADERS", value);
        }
        let counters = self.telemetry.counters();
        let metrics = metrics.unwrap_or_else(|| Box::new(move || counters.families()));
        let exporter = OtlpExporter::start(settings, self.clock(), metrics)?;
        self.telemetry.set_exporter(exporter);
        Ok(())
    }

    /// Opens the state directory.
    pub fn state_dir(&self) -> Result<StateDir, AppError> {
        Ok(StateDir::open(self.environment.state_dir()?)?)
    }

    /// Returns the top level of the repository that contains the working directory, if there is one.
    pub fn repository(&self) -> Option<PathBuf> {
        let directory = self.environment.working_dir();
        let directory = match directory.canonicalize() {
            Ok(directory) => directory,
            Err(error) => {
                tracing::debug!(%error, "the working directory is in no repository");
                return None;
            }
        };
        let mut ancestors = directory.ancestors();
        let top = ancestors.find(|directory| directory.join(".git").exists());
        top.map(Path::to_path_buf)
    }

    /// Returns the repository that contains the working directory, with the repository on a source host
    /// that it is a clone of.
    pub fn working_repository(&self) -> Option<WorkingRepository> {
        let path = self.repository()?;
        let origin = clone_origin(&path).map(|repo| repo.to_string());
        Some(WorkingRepository { path, origin })
    }

    /// Finds a run by name: `last` and a task id mean a run of the working directory's repository if it
    /// has one. Returns an error for a run of a newer ralph before reading or writing anything.
    pub fn find_run(&self, query: &str) -> Result<RunDir, AppError> {
        let state = self.state_dir()?;
        let id = match self.working_repository() {
            Some(repository) => state.find_near(query, &repository)?,
            None => state.find(query)?,
        };
        let dir = state.run(&id);
        journal::refuse_newer(&dir.journal())?;
        Ok(dir)
    }

    /// Returns the configuration layers of the working directory.
    pub fn layers(&self) -> ConfigLayers {
        ConfigLayers::for_working_dir(&self.environment)
    }

    /// Returns the effective settings of the working directory.
    pub fn settings(&self) -> Result<Settings, AppError> {
        Ok(load_settings(&self.layers())?.value)
    }

    /// Returns the effective model profiles of the working directory.
    pub fn profiles(&self) -> Result<ModelProfiles, AppError> {
        Ok(load_profiles(&self.layers())?.value)
    }

    /// Returns the effective coding agents of the working directory.
    pub fn agents(&self) -> Result<Agents, AppError> {
        Ok(load_agents(&self.layers())?.value)
    }

    /// Returns the factory of the concrete providers.
    pub fn providers(&self) -> Result<Providers, AppError> {
        Ok(self.providers_with(self.state_dir()?))
    }

    /// Returns the factory of the concrete providers without creating or changing the state
    /// directory.
    pub fn providers_read_only(&self) -> Result<Providers, AppError> {
        let root = self.environment.state_dir()?;
        Ok(self.providers_with(StateDir::read_only(root)))
    }

    /// Returns the host's git for read-only access to the user's repositories.
    pub fn git_read_only(&self) -> HostGit {
        let home = self.environment.home().map(Path::to_path_buf);
        let git = HostGit::read_only(self.search_path(), home);
        match self.environment.state_dir() {
            Ok(root) => git.with_own_repositories(StateDir::read_only(root).mirrors()),
            Err(error) => {
                tracing::debug!(%error, "no repository is ralph's own");
                git
            }
        }
    }

    fn providers_with(&self, state: StateDir) -> Providers {
        Providers {
            models: self.models_with(state.clone()),
            state,
            search_path: self.search_path().to_owned(),
            home: self.environment.home().map(Path::to_path_buf),
            config: self.environment.config_dir(),
            toolchains: self.environment.toolchains(),
            clock: self.clock(),
            redactor: self.redactor(),
            connections: self.source_connections.clone(),
            open_sandboxes: self.open_sandboxes.clone(),
            counters: self.telemetry.counters(),
        }
    }

    /// Returns the open connections to source hosts.
    pub(crate) fn source_connections(&self) -> &SourceConnections {
        &self.source_connections
    }

    /// Returns the sandboxes that runs of this process work in.
    pub fn open_sandboxes(&self) -> &OpenSandboxes {
        &self.open_sandboxes
    }

    /// Returns the factory of the models.
    pub fn models(&self) -> Result<ModelFactory, AppError> {
        Ok(self.models_with(self.state_dir()?))
    }

    fn models_with(&self, state: StateDir) -> ModelFactory {
        ModelFactory {
            environment: self.environment.clone(),
            state,
            clock: self.clock(),
            stored: self.model_keys.clone(),
        }
    }

    /// Loads the stored credentials that models use, unless they are loaded already. Call this before
    /// creating a model.
    pub async fn load_model_keys(&self) -> Result<(), AppError> {
        if self.model_keys.get().is_some() {
            return Ok(());
        }
        let keys = StoredModelKeys::load(&self.tokens_read_only()?).await;
        for secret in keys.secrets() {
            self.add_secret("model key", secret);
        }
        // Another task may have loaded the same keys in the meantime.
        self.model_keys.get_or_init(|| keys);
        Ok(())
    }

    /// Returns the search path for programs.
    pub fn search_path(&self) -> &str {
        self.environment.search_path().unwrap_or(DEFAULT_PATH)
    }

    /// Returns the credentials of agents from the selected stores.
    pub fn tokens(&self, selection: StoreSelection) -> Result<TokenStorage, AppError> {
        Ok(self.tokens_in(&self.state_dir()?, selection))
    }

    /// Returns the credentials of agents without creating or changing the state directory.
    pub fn tokens_read_only(&self) -> Result<TokenStorage, AppError> {
        let root = self.environment.state_dir()?;
        Ok(self.tokens_in(&StateDir::read_only(root), StoreSelection::All))
    }

    fn tokens_in(&self, state: &StateDir, selection: StoreSelection) -> TokenStorage {
        TokenStorage::new(TokenSources {
            selection,
            files: state.tokens(),
            keyring: providers::keyring(self.search_path()),
            variables: self.environment.agent_credentials(),
            gateway: self.environment.gateway(),
            clock: self.clock(),
        })
    }

    /// Adds a secret that did not come from the environment, so that it is redacted in all output.
    pub fn add_secret(&self, name: &str, secret: &Secret) {
        let copy = Secret::new(secret.expose().to_owned());
        self.redactor.learn(name, copy);
    }

    /// Returns the redactor of the environment's secrets and of those added later. All clones share
    /// the same secrets.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }
}
