//! The wiring: the only place that names concrete providers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ralph_core::plan::{ContainerPlan, RunPlan};
use ralph_core::ports::{Clock, Model, SandboxProvider};
use ralph_core::price::{self, Price};
use ralph_core::secret::Redactor;
use ralph_core::state::RunState;
use ralph_engine::git::HostGit;
use ralph_engine::replies;
use ralph_engine::run::{Outside, Profiles};
use ralph_engine::store::StateDir;
use ralph_providers::docker::images::Images;
use ralph_providers::docker::{Engine, EngineError};
use ralph_providers::model::{RecordedReply, Replay, Scripted};
use ralph_providers::sandbox::{DockerProvider, DockerSettings, Limits, LocalProvider};
use ralph_providers::scm::{Git, LocalScm};

use crate::cli::CliError;
use crate::tokens::place::{Keychain, SecretTool, TokenStore, find_program};

/// What concrete providers are made from.
pub(crate) struct Wiring {
    /// The state directory.
    pub state: StateDir,
    /// The `PATH` that programs are found on.
    pub search_path: String,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Variables that say where toolchains live.
    pub toolchains: BTreeMap<String, String>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What must never be written down.
    pub redactor: Redactor,
}

/// What is said about images, for the command that is about them alone.
pub(crate) use ralph_providers::docker::images as image;

/// The sandbox providers there are.
pub(crate) const SANDBOXES: [&str; 2] = ["local", "docker"];

impl Wiring {
    /// Returns the host's git.
    pub(crate) fn git(&self) -> Result<HostGit, CliError> {
        Ok(HostGit::new(
            self.search_path.clone(),
            self.state.root().join("gitconfig"),
            self.home.clone(),
        )?)
    }

    /// Returns a sandbox provider by name.
    pub(crate) fn sandboxes(
        &self,
        name: &str,
        container: Option<&ContainerPlan>,
    ) -> Result<Arc<dyn SandboxProvider>, CliError> {
        match name {
            "local" => Ok(self.local()),
            "docker" => Ok(Arc::new(self.docker(container))),
            other => Err(CliError::usage(
                format!("sandbox `{other}` is not available"),
                format!("this version has {}", SANDBOXES.join(", ")),
                "use `--sandbox local`, or set `sandbox_provider: local` in the task file",
            )),
        }
    }

    /// Returns the local sandboxes.
    pub(crate) fn local(&self) -> Arc<dyn SandboxProvider> {
        let provider = LocalProvider::new(self.state.sandboxes(), &self.search_path);
        Arc::new(provider.with_toolchains(self.toolchains.clone()))
    }

    /// Returns the Docker sandboxes of an engine, written as in `DOCKER_HOST`. They can be looked at
    /// and removed, not made.
    pub(crate) fn docker_at(&self, engine: Option<String>) -> DockerProvider {
        let mut settings = DockerSettings::new("", self.state.root());
        settings.host = engine;
        DockerProvider::new(settings)
    }

    /// Returns the Docker sandboxes of a plan; without one, only what exists can be looked at.
    pub(crate) fn docker(&self, container: Option<&ContainerPlan>) -> DockerProvider {
        let mut settings = DockerSettings::new("", self.state.root());
        if let Some(plan) = container {
            settings.host.clone_from(&plan.engine);
            settings.image.clone_from(&plan.image);
            settings.read_only = plan.read_only;
            settings.limits = Limits {
                cpus: plan.millicpus.map(|number| f64::from(number) / 1000.0),
                memory: plan.memory,
                disk: plan.disk,
                processes: plan.processes,
            };
        }
        DockerProvider::new(settings)
    }

    /// Returns the images of the Docker Engine at `host`, which is written like `DOCKER_HOST`.
    pub(crate) async fn images(&self, host: Option<&str>) -> Result<Images, EngineError> {
        let engine = Engine::connect(host).await?;
        let directory = self.state.root().join("images");
        Ok(Images::new(engine, directory, self.clock.clone()))
    }

    /// Returns a model by name. `used` are the places of a script that the run has used already.
    pub(crate) fn model(&self, name: &str, used: &[String]) -> Result<Arc<dyn Model>, CliError> {
        if let Some(file) = name.strip_prefix("scripted:") {
            let scripted = Scripted::load(Path::new(file), used).map_err(|error| {
                CliError::usage(
                    format!("cannot use the model `{name}`"),
                    error.to_string(),
                    "correct the script",
                )
            })?;
            return Ok(Arc::new(scripted));
        }
        if let Some(run) = name.strip_prefix("replay:") {
            return self.replay(run, used.len());
        }
        Err(CliError::usage(
            format!("model `{name}` is not available"),
            "this version answers from scripts and from recorded runs",
            "use `--model scripted:FILE.jsonl` or `--model replay:RUN`",
        ))
    }

    fn replay(&self, run: &str, used: usize) -> Result<Arc<dyn Model>, CliError> {
        let id = self.state.find(run)?;
        let recorded = replies::of(&self.state.run(&id))?;
        let recorded = recorded
            .into_iter()
            .map(|(iteration, attempt)| RecordedReply {
                iteration,
                attempt: attempt.attempt,
                text: attempt.reply,
                usage: attempt.usage,
            })
            .collect();
        Ok(Arc::new(Replay::load(id.as_str(), recorded, used)))
    }

    /// Returns everything outside of a run.
    pub(crate) fn outside(
        &self,
        plan: &RunPlan,
        state: Option<&RunState>,
    ) -> Result<Outside, CliError> {
        let git = Git {
            program: PathBuf::from("git"),
            path: self.search_path.clone().into(),
        };
        let scm = LocalScm::new(
            &self.state.pulls(),
            Path::new(&plan.repo),
            git,
            self.clock.clone(),
        )
        .map_err(|error| {
            CliError::runtime(
                format!("cannot use the repository `{}`", plan.repo),
                error.to_string(),
                "look at the path, then try again",
            )
        })?;
        let used = state.map(|state| state.script.clone()).unwrap_or_default();
        let (model, price) = (self.model(&plan.model, &used)?, price_of(&plan.model));
        Ok(Outside {
            sandboxes: self.sandboxes(&plan.sandbox, plan.container.as_ref())?,
            agent: None,
            gate: None,
            profiles: same_for_all(&model, &price),
            model,
            price,
            scm: Arc::new(scm),
            git: self.git()?,
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
        })
    }
}

/// Returns the keyring of this machine, if it has one.
pub(crate) fn keyring(search_path: &str) -> Option<Box<dyn TokenStore>> {
    if cfg!(target_os = "macos") {
        keychain(search_path)
    } else {
        secret_tool(search_path)
    }
}

/// Returns the macOS keychain, if its program is there.
pub(crate) fn keychain(search_path: &str) -> Option<Box<dyn TokenStore>> {
    let program = find_program(search_path, "security")?;
    Some(Box::new(Keychain::new(program)))
}

/// Returns the Linux keyring, if its program is there.
pub(crate) fn secret_tool(search_path: &str) -> Option<Box<dyn TokenStore>> {
    let program = find_program(search_path, "secret-tool")?;
    Some(Box::new(SecretTool::new(program)))
}

/// A script and a recorded run answer whoever is asked: they stand in for every profile.
fn same_for_all(model: &Arc<dyn Model>, price: &Price) -> Profiles {
    let (model, price) = (model.clone(), *price);
    Profiles {
        doctor: None,
        choose: Arc::new(move |_| Ok((model.clone(), price))),
    }
}

/// Returns a model's price; one that nobody knows costs as much as the dearest.
fn price_of(model: &str) -> Price {
    price::known(model).unwrap_or_else(price::highest)
}
