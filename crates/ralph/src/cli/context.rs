//! What a command can ask for besides its arguments. Nothing is read before it is needed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ralph_core::ports::Clock;
use ralph_core::secret::{Redactor, Secret};
use ralph_engine::git::HostGit;
use ralph_engine::journal;
use ralph_engine::store::{RunDir, StateDir};
use ralph_providers::agent::Agents;

use super::args::RunArg;
use super::error::CliError;
use super::output::Output;
use crate::clock::SystemClock;
use crate::config::{
    Environment, Layers, Profiles, Settings, load_agents, load_profiles, load_settings,
};
use crate::terminal::{Look, Mode, Progress};
use crate::tokens::{Among, Sources, Tokens};
use crate::wire::models::Models;
use crate::wire::{self, Wiring};

/// Where programs are looked for when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a command can ask for.
#[derive(Debug)]
pub struct Context {
    environment: Environment,
    output: Output,
    clock: SystemClock,
    learned: Mutex<Vec<(String, Secret)>>,
}

impl Context {
    /// Takes the environment.
    pub fn new(environment: Environment) -> Self {
        let output = Output::new(Look::of_stdout(&environment));
        Self {
            environment,
            output,
            clock: SystemClock::start(),
            learned: Mutex::default(),
        }
    }

    /// Returns the environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns where to print.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Returns the machine's clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock)
    }

    /// Opens the state directory.
    pub fn state(&self) -> Result<StateDir, CliError> {
        Ok(StateDir::open(self.environment.state_dir()?)?)
    }

    /// Finds the run that was named. A run of a newer ralph is refused here, before anything is read or
    /// written for it.
    pub fn find(&self, run: &RunArg) -> Result<RunDir, CliError> {
        let state = self.state()?;
        let id = state.find(&run.run)?;
        let dir = state.run(&id);
        journal::refuse_newer(&dir.journal())?;
        Ok(dir)
    }

    /// Returns the layers of the configuration in the working directory.
    pub fn layers(&self) -> Layers {
        Layers::of(&self.environment)
    }

    /// Returns the settings in force in the working directory.
    pub fn settings(&self) -> Result<Settings, CliError> {
        Ok(load_settings(&self.layers())?.value)
    }

    /// Returns the model profiles in force in the working directory.
    pub fn profiles(&self) -> Result<Profiles, CliError> {
        Ok(load_profiles(&self.layers())?.value)
    }

    /// Returns the coding agents in force in the working directory.
    pub fn agents(&self) -> Result<Agents, CliError> {
        Ok(load_agents(&self.layers())?.value)
    }

    /// Returns what concrete providers are made from.
    pub(crate) fn wiring(&self) -> Result<Wiring, CliError> {
        Ok(self.wiring_with(self.state()?))
    }

    /// Returns what concrete providers are made from, for looking only: the state directory is neither
    /// made nor changed.
    pub(crate) fn wiring_to_look(&self) -> Result<Wiring, CliError> {
        let root = self.environment.state_dir()?;
        Ok(self.wiring_with(StateDir::unopened(root)))
    }

    /// Returns the host's git for looking at the user's own repositories only: nothing is written.
    pub(crate) fn git_to_look(&self) -> HostGit {
        let home = self.environment.home().map(Path::to_path_buf);
        HostGit::looking(self.search_path(), home)
    }

    fn wiring_with(&self, state: StateDir) -> Wiring {
        Wiring {
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
    pub(crate) fn models(&self) -> Result<Models, CliError> {
        Ok(self.models_with(self.state()?))
    }

    fn models_with(&self, state: StateDir) -> Models {
        Models {
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
    pub fn tokens(&self, among: Among) -> Result<Tokens, CliError> {
        Ok(self.tokens_in(&self.state()?, among))
    }

    /// Returns the credentials of agents for looking only: the state directory is neither made nor
    /// changed.
    pub(crate) fn tokens_to_look(&self) -> Result<Tokens, CliError> {
        let root = self.environment.state_dir()?;
        Ok(self.tokens_in(&StateDir::unopened(root), Among::All))
    }

    fn tokens_in(&self, state: &StateDir, among: Among) -> Tokens {
        Tokens::new(Sources {
            among,
            files: state.tokens(),
            keyring: wire::keyring(self.search_path()),
            variables: self.environment.agent_credentials(),
            gateway: self.environment.gateway(),
            clock: self.clock(),
        })
    }

    /// Remembers a secret that did not come from the environment, so that nothing prints it.
    pub fn learn(&self, name: impl Into<String>, secret: &Secret) {
        let copy = Secret::new(secret.expose().to_owned());
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.push((name.into(), copy));
    }

    /// Returns what keeps the environment's secrets, and those learned since, out of everything that
    /// is written.
    pub fn redactor(&self) -> Redactor {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let learned = learned
            .iter()
            .map(|(name, secret)| (name.clone(), secret.expose().to_owned()));
        let secrets = self.environment.secrets().into_iter().chain(learned);
        Redactor::new(
            secrets
                .map(|(name, value)| (name, Secret::new(value)))
                .collect(),
        )
    }

    /// Returns how a run is shown: as JSON, or as it fits standard output and the settings.
    pub fn view_mode(&self, is_json: bool, settings: &Settings) -> Mode {
        if is_json {
            return Mode::Json;
        }
        let progress = if settings.monitoring.show_progress {
            Progress::Shown
        } else {
            Progress::Hidden
        };
        self.output.look().mode(progress)
    }
}
