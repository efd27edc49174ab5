//! Finds the workspaces whose run has no directory any more.

use std::time::Duration;

use ralph_core::id::RunId;
use ralph_core::ports::{ProviderProblem, Sandbox, SandboxId, SandboxProvider as _};

use super::inventory::{SandboxInventory, provider_problem};
use super::retention::{self, KeepReason, PruneCandidate, PruneVerdict, RetentionPolicy};
use super::run_status;
use crate::app::App;
use crate::planning::container;
use crate::providers::{LocalLimits, Providers};

/// The longest wait for a Docker Engine: a list of runs must not hang with it.
const MAX_LISTING: Duration = Duration::from_secs(10);

/// A workspace with work of a run that has no directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedSandbox {
    pub run: RunId,
    pub provider: &'static str,
    pub id: SandboxId,
    /// The time since its creation, if the provider knows it.
    pub age: Option<Duration>,
    engine: Option<String>,
}

/// The orphaned workspaces of all providers that answer.
pub(crate) struct OrphanedSandboxes {
    pub(crate) found: Vec<OrphanedSandbox>,
    /// Why the containers could not be listed.
    pub(crate) docker_problem: Option<ProviderProblem>,
}

impl OrphanedSandboxes {
    /// Lists the workspaces of this state directory.
    pub(crate) async fn find(app: &App, providers: &Providers) -> Self {
        let mut orphans = Self {
            found: Vec::new(),
            docker_problem: None,
        };
        let local = SandboxInventory::local(providers);
        if let Err(problem) = orphans.add(&local, None, providers).await {
            tracing::warn!("cannot list the local sandboxes: {}", problem.what);
        }
        let listing = tokio::time::timeout(MAX_LISTING, orphans.add_containers(app, providers));
        let listed = listing.await;
        orphans.docker_problem = match listed {
            Ok(listed) => listed.err(),
            Err(_) => Some(ProviderProblem {
                what: format!("the Docker Engine did not answer within {MAX_LISTING:?}"),
                fix: "restart it, then try again".into(),
            }),
        };
        orphans
    }

    async fn add_containers(
        &mut self,
        app: &App,
        providers: &Providers,
    ) -> Result<(), ProviderProblem> {
        let engine = docker_engine(app).await?;
        let docker = SandboxInventory::docker(engine.clone(), providers);
        self.add(&docker, engine, providers).await
    }

    async fn add(
        &mut self,
        inventory: &SandboxInventory,
        engine: Option<String>,
        providers: &Providers,
    ) -> Result<(), ProviderProblem> {
        for sandbox in inventory.list(providers).await? {
            let candidate = PruneCandidate {
                state_dir_owner: sandbox.state_dir_owner,
                creator: sandbox.creator,
                run_status: run_status::inspect(&sandbox, providers),
                content: sandbox.content(),
                age: sandbox.age,
            };
            let verdict = retention::decide(&candidate, &RetentionPolicy::for_run_start());
            let run = sandbox.labels.get("run").and_then(|id| RunId::parse(id));
            if let (PruneVerdict::Keep(KeepReason::Orphaned), Some(run)) = (verdict, run) {
                self.found.push(OrphanedSandbox {
                    run,
                    provider: inventory.name(),
                    id: sandbox.id,
                    age: sandbox.age,
                    engine: engine.clone(),
                });
            }
        }
        Ok(())
    }
}

async fn docker_engine(app: &App) -> Result<Option<String>, ProviderProblem> {
    let engine = match app.settings() {
        Ok(settings) => container::find_docker_engine(&settings, app).await,
        Err(error) => Err(error),
    };
    engine.map_err(|error| ProviderProblem {
        what: error.why,
        fix: error.fix,
    })
}

impl OrphanedSandbox {
    /// Takes over the sandbox and ends its processes; `None` if it is gone. A container is replaced by
    /// one of the same image.
    pub(crate) async fn attach(
        &self,
        providers: &Providers,
    ) -> Result<Option<Box<dyn Sandbox>>, ProviderProblem> {
        let attached = if self.provider == "docker" {
            let listing = providers.docker_provider_at(self.engine.clone());
            let image = listing.image_of(&self.id).await;
            let Some(image) = image.map_err(|error| error.problem())? else {
                return Err(ProviderProblem {
                    what: "its container is gone, so its image is unknown".into(),
                    fix: "copy the files out of its volume".into(),
                });
            };
            let provider = providers.docker_provider_with_image(self.engine.clone(), image);
            provider.attach(&self.id).await
        } else {
            let provider = providers.local_provider(LocalLimits::default());
            provider.attach(&self.id).await
        };
        attached.map_err(provider_problem)
    }

    /// Removes the sandbox and everything in it.
    pub(crate) async fn remove(&self, providers: &Providers) -> Result<(), ProviderProblem> {
        let inventory = if self.provider == "docker" {
            SandboxInventory::docker(self.engine.clone(), providers)
        } else {
            SandboxInventory::local(providers)
        };
        inventory.remove(&self.id).await
    }
}
