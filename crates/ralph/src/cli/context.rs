//! What a command can ask for besides its arguments. Nothing is read before it is needed.

use std::path::Path;
use std::sync::Arc;

use ralph_core::ports::Clock;
use ralph_core::secret::{Redactor, Secret};
use ralph_engine::git::HostGit;
use ralph_engine::journal;
use ralph_engine::store::{RunDir, StateDir};
use ralph_providers::agent::Agents;

use super::args::RunArg;
use super::error::CliError;
use super::output::CliOutput;
use super::secret_registry::SecretRegistry;
use crate::clock::SystemClock;
use crate::config::{
    ConfigLayers, Environment, ModelProfiles, NoStateDirError, Settings, load_agents,
    load_profiles, load_settings,
};
use crate::diagnostics_log::{self, LogSettings};
use crate::providers::models::ModelFactory;
use crate::providers::{self, Providers};
use crate::terminal::{OutputMode, SpinnerVisibility, StdoutStyle};
use crate::tokens::{StoreSelection, TokenSources, TokenStorage};

/// Where programs are looked for when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a command can ask for.
#[derive(Debug)]
pub struct Context {
    environment: Environment,
    output: CliOutput,
    clock: SystemClock,
    secrets: Arc<SecretRegistry>,
}

impl Context {
    /// Takes the environment.
    pub fn new(environment: Environment) -> Self {
        let output = CliOutput::new(StdoutStyle::detect(&environment));
        let secrets = environment.secrets().into_iter();
        let secrets = secrets.map(|(name, value)| (name, Secret::new(value)));
        Self {
            secrets: Arc::new(SecretRegistry::new(secrets.collect())),
            environment,
            output,
            clock: SystemClock::new(),
        }
    }

    /// Returns the environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns where to print.
    pub fn output(&self) -> CliOutput {
        self.output
    }

    /// Returns the machine's clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock)
    }

    /// Opens the state directory.
    pub fn state_dir(&self) -> Result<StateDir, CliError> {
        Ok(StateDir::open(self.environment.state_dir()?)?)
    }

    /// Finds the run that was named. A run of a newer ralph is refused here, before anything is read or
    /// written for it.
    pub fn find_run(&self, run: &RunArg) -> Result<RunDir, CliError> {
        let state = self.state_dir()?;
        let id = state.find(&run.run)?;
        let dir = state.run(&id);
        journal::refuse_newer(&dir.journal())?;
        Ok(dir)
    }

    /// Returns the layers of the configuration in the working directory.
    pub fn layers(&self) -> ConfigLayers {
        ConfigLayers::for_working_dir(&self.environment)
    }

    /// Returns the settings in force in the working directory.
    pub fn settings(&self) -> Result<Settings, CliError> {
        Ok(load_settings(&self.layers())?.value)
    }

    /// Returns the model profiles in force in the working directory.
    pub fn profiles(&self) -> Result<ModelProfiles, CliError> {
        Ok(load_profiles(&self.layers())?.value)
    }

    /// Returns the coding agents in force in the working directory.
    pub fn agents(&self) -> Result<Agents, CliError> {
        Ok(load_agents(&self.layers())?.value)
    }

    /// Returns what concrete providers are made from.
    pub(crate) fn providers(&self) -> Result<Providers, CliError> {
        Ok(self.providers_with(self.state_dir()?))
    }

    /// Returns what concrete providers are made from, for looking only: the state directory is neither
    /// made nor changed.
    pub(crate) fn providers_read_only(&self) -> Result<Providers, CliError> {
        let root = self.environment.state_dir()?;
        Ok(self.providers_with(StateDir::read_only(root)))
    }

    /// Returns the host's git for looking at the user's own repositories only: nothing is written.
    pub(crate) fn git_read_only(&self) -> HostGit {
        let home = self.environment.home().map(Path::to_path_buf);
        HostGit::read_only(self.search_path(), home)
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
        }
    }

    /// Returns what models are made from.
    pub(crate) fn models(&self) -> Result<ModelFactory, CliError> {
        Ok(self.models_with(self.state_dir()?))
    }

    fn models_with(&self, state: StateDir) -> ModelFactory {
        ModelFactory {
            environment: self.environment.clone(),
            state,
            clock: self.clock(),
        }
    }

    /// Returns where programs are found.
    pub fn search_path(&self) -> &str {
        self.environment.search_path().unwrap_or(DEFAULT_PATH)
    }

    /// Returns the credentials of agents, from these places.
    pub fn tokens(&self, among: StoreSelection) -> Result<TokenStorage, CliError> {
        Ok(self.tokens_in(&self.state_dir()?, among))
    }

    /// Returns the credentials of agents for looking only: the state directory is neither made nor
    /// changed.
    pub(crate) fn tokens_read_only(&self) -> Result<TokenStorage, CliError> {
        let root = self.environment.state_dir()?;
        Ok(self.tokens_in(&StateDir::read_only(root), StoreSelection::All))
    }

    fn tokens_in(&self, state: &StateDir, among: StoreSelection) -> TokenStorage {
        TokenStorage::new(TokenSources {
            selection: among,
            files: state.tokens(),
            keyring: providers::keyring(self.search_path()),
            variables: self.environment.agent_credentials(),
            gateway: self.environment.gateway(),
            clock: self.clock(),
        })
    }

    /// Remembers a secret that did not come from the environment, so that nothing prints it.
    pub fn add_secret(&self, name: impl Into<String>, secret: &Secret) {
        let copy = Secret::new(secret.expose().to_owned());
        self.secrets.add(name.into(), copy);
    }

    /// Returns what keeps the environment's secrets, and those learned since, out of everything that
    /// is written.
    pub fn redactor(&self) -> Redactor {
        self.secrets.redactor()
    }

    /// Starts the diagnostics log. It redacts every secret that this context knows at the time of a line.
    pub(super) fn start_log(&self, verbosity: u8) {
        let settings = LogSettings {
            state_dir: match self.environment.state_dir() {
                Ok(directory) => Some(directory),
                // Commands that need a state directory report this themselves.
                Err(NoStateDirError) => None,
            },
            filter: self.environment.log_filter().map(str::to_owned),
            verbosity,
        };
        let secrets = self.secrets.clone();
        diagnostics_log::install(settings, move || secrets.redactor());
    }

    /// Returns how a run is shown: as JSON, or as it fits standard output and the settings.
    pub fn view_mode(&self, is_json: bool, settings: &Settings) -> OutputMode {
        if is_json {
            return OutputMode::Json;
        }
        let progress = if settings.monitoring.show_progress {
            SpinnerVisibility::Shown
        } else {
            SpinnerVisibility::Hidden
        };
        self.output.look().output_mode(progress)
    }
}
