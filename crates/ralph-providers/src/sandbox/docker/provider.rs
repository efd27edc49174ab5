//! Makes, finds and lists Docker sandboxes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};
use ralph_core::ports::{
    Isolation, Labels, Problem, Sandbox, SandboxError, SandboxId, SandboxInfo, SandboxProvider,
    SandboxSpec,
};
use ralph_guest::command::Name;
use tokio::sync::OnceCell;

use super::container::{Container, ContainerError};
use super::line::Line;
use super::marks::{self, Marks, SANDBOX, STATE};
use super::owner::Owner;
use super::program;
use super::sandbox::DockerSandbox;
use super::settings::{DockerSettings, Reach};
use crate::docker::{Engine, EngineError, Facts, go_architecture};
use crate::sandbox::way_out::WayOut;

/// Sandboxes that are containers of a Docker Engine.
pub struct DockerProvider {
    pub(super) settings: DockerSettings,
    way_out: Option<Arc<dyn WayOut>>,
    /// The engine, once it has answered.
    engine: OnceCell<(Engine, Facts)>,
    /// Set once the engine has the image and the guest's program.
    equipped: OnceCell<()>,
}

/// A sandbox of any ralph on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: SandboxId,
    /// What it is marked with.
    pub labels: Labels,
    /// The state directory that it belongs to.
    pub state: PathBuf,
    /// Whether the process that made it, or took it over since, is known to have ended.
    pub owner_is_dead: bool,
    /// When it was made, as the engine writes it.
    pub created: Option<String>,
}

impl DockerProvider {
    /// Makes a provider of sandboxes from these settings. Nothing is asked of the engine yet.
    pub fn new(settings: DockerSettings) -> Self {
        Self {
            settings,
            way_out: None,
            engine: OnceCell::new(),
            equipped: OnceCell::new(),
        }
    }

    /// Lets commands connect to somebody, who decides what they get.
    #[must_use]
    pub fn with_way_out(mut self, way_out: Arc<dyn WayOut>) -> Self {
        self.way_out = Some(way_out);
        self
    }

    /// Returns the sandboxes of every ralph that uses this engine.
    pub async fn survey(&self) -> Result<Vec<Found>, EngineError> {
        let (engine, _) = self.engine().await?;
        let mut users = users(engine).await?;
        let mut found: Vec<Found> = volumes(engine, &[SANDBOX.to_owned()])
            .await?
            .into_iter()
            .map(|(name, marks, created)| Found {
                id: marks::id(name),
                labels: marks.labels,
                state: marks.state.into(),
                owner_is_dead: users
                    .remove(&name)
                    .or(marks.owner)
                    .is_some_and(|owner| owner.is_dead()),
                created,
            })
            .collect();
        found.sort_by(|a, b| a.id.0.cmp(&b.id.0));
        Ok(found)
    }

    /// Removes a sandbox with everything in it, running or not. A missing one is fine.
    pub async fn discard(&self, id: &SandboxId) -> Result<(), SandboxError> {
        let Some(name) = marks::parse(&id.0) else {
            return Ok(());
        };
        let (engine, facts) = self.engine().await.map_err(|error| refused(&error))?;
        let spec = SandboxSpec::default();
        let marks = Marks::of(&spec, &self.settings.state);
        let container = self.container((engine, facts), name, marks);
        let removed = container.remove().await;
        removed.map_err(|error| error.into_sandbox_error(&container))?;
        remove_volume(engine, name)
            .await
            .map_err(|error| refused(&error))
    }

    /// Returns the engine, whatever it has.
    async fn engine(&self) -> Result<&(Engine, Facts), EngineError> {
        self.engine
            .get_or_try_init(|| async {
                let engine = Engine::connect(self.settings.host.as_deref()).await?;
                let facts = engine.facts().await?;
                Ok((engine, facts))
            })
            .await
    }

    /// Returns the engine, with the image and the guest's program in it.
    async fn ready(&self) -> Result<&(Engine, Facts), EngineError> {
        let (engine, facts) = self.engine().await?;
        self.equipped
            .get_or_try_init(|| async {
                // Before anything is made that an image is needed for.
                check_image(engine, facts, &self.settings.image).await?;
                program::install(engine, &self.settings.image).await
            })
            .await?;
        self.engine().await
    }

    fn container(&self, (engine, facts): (&Engine, &Facts), name: Name, marks: Marks) -> Container {
        let by_socket = match self.settings.reach {
            Reach::Nearest => {
                facts.is_local_socket && !facts.is_desktop && cfg!(target_os = "linux")
            }
            Reach::Attached => false,
        };
        let mut container = Container::new(
            engine.clone(),
            facts.clone(),
            self.settings.clone(),
            name,
            marks,
            by_socket,
        );
        container.way_out.clone_from(&self.way_out);
        container
    }

    /// Makes a sandbox, or leaves nothing behind.
    async fn make(&self, container: &Container) -> Result<Line, ContainerError> {
        let line = async {
            container.create().await?;
            container.start().await
        };
        match line.await {
            Ok(line) => Ok(line),
            Err(error) => {
                // What is wrong is worth more than what stays behind because of it.
                container.remove().await.ok();
                remove_volume(&container.engine, container.name).await.ok();
                Err(error)
            }
        }
    }
}

#[async_trait]
impl SandboxProvider for DockerProvider {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn isolation(&self) -> Isolation {
        Isolation::Container
    }

    async fn preflight(&self) -> Vec<Problem> {
        if !program::is_there() {
            return vec![Problem {
                what: "this ralph was built without the program that runs in containers".into(),
                fix: "build it on Linux, or with the target `<architecture>-unknown-linux-musl` of the Rust toolchain".into(),
            }];
        }
        let engine = match Engine::connect(self.settings.host.as_deref()).await {
            Ok(engine) => engine,
            Err(error) => return vec![error.problem()],
        };
        match engine.facts().await {
            Ok(facts) => beyond(&self.settings, &facts),
            Err(error) => vec![error.problem()],
        }
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        let (engine, facts) = self.ready().await.map_err(|error| refused(&error))?;
        let name = Name::random();
        let marks = Marks::of(spec, &self.settings.state);
        let container = self.container((engine, facts), name, marks);
        match self.make(&container).await {
            Ok(line) => Ok(Box::new(DockerSandbox::new(
                marks::id(name),
                container,
                line,
            ))),
            Err(error) => Err(error.into_sandbox_error(&container)),
        }
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError> {
        let Some(name) = marks::parse(&id.0) else {
            return Ok(None);
        };
        let (engine, facts) = self.ready().await.map_err(|error| refused(&error))?;
        let looked = engine.api().inspect_volume(&marks::object(name)).await;
        let volume = match engine.call("look at a volume", async { looked }).await {
            Ok(volume) => volume,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(refused(&error)),
        };
        let Some((_, marks)) = Marks::read(&volume.labels) else {
            return Ok(None);
        };
        // Again, because the old container is removed before the new one is made.
        let checked = check_image(engine, facts, &self.settings.image).await;
        checked.map_err(|error| refused(&error))?;
        let container = self.container((engine, facts), name, marks.taken_over());
        match container.take_over().await {
            Ok(line) => Ok(Some(Box::new(DockerSandbox::new(
                id.clone(),
                container,
                line,
            )))),
            Err(error) => Err(error.into_sandbox_error(&container)),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let (engine, _) = self.engine().await.map_err(|error| refused(&error))?;
        let state = format!("{STATE}={}", self.settings.state.display());
        let found = volumes(engine, &[SANDBOX.to_owned(), state]).await;
        let mut infos: Vec<SandboxInfo> = found
            .map_err(|error| refused(&error))?
            .into_iter()
            .map(|(name, marks, _)| SandboxInfo {
                id: marks::id(name),
                labels: marks.labels,
            })
            .collect();
        infos.sort_by(|a, b| a.id.0.cmp(&b.id.0));
        Ok(infos)
    }
}

/// Makes sure that the engine has an image for its machine.
async fn check_image(engine: &Engine, facts: &Facts, image: &str) -> Result<(), EngineError> {
    let inspected = engine.api().inspect_image(image);
    let inspected = engine.call("look at an image", inspected).await?;
    let has = inspected.architecture.unwrap_or_default();
    let has = go_architecture(&has);
    if has.is_empty() || has == facts.architecture {
        return Ok(());
    }
    Err(EngineError::Architecture {
        image: image.to_owned(),
        has: has.to_owned(),
        needs: facts.architecture.clone(),
    })
}

/// Returns the sandboxes whose volumes have all of these labels.
async fn volumes(
    engine: &Engine,
    labels: &[String],
) -> Result<Vec<(Name, Marks, Option<String>)>, EngineError> {
    let filters = HashMap::from([("label".to_owned(), labels.to_vec())]);
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let listed = engine.api().list_volumes(Some(options));
    let listed = engine.call("list the volumes", listed).await?;
    Ok(listed
        .volumes
        .unwrap_or_default()
        .into_iter()
        .filter_map(|volume| {
            let (name, marks) = Marks::read(&volume.labels)?;
            Some((name, marks, volume.created_at))
        })
        .collect())
}

/// Returns who has made the container of each sandbox: whoever took it over last.
async fn users(engine: &Engine) -> Result<BTreeMap<Name, Owner>, EngineError> {
    let filters = HashMap::from([("label".to_owned(), vec![SANDBOX.to_owned()])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let listed = engine.api().list_containers(Some(options));
    let listed = engine.call("list the containers", listed).await?;
    Ok(listed
        .into_iter()
        .filter_map(|container| Marks::read(&container.labels?))
        .filter_map(|(name, marks)| Some((name, marks.owner?)))
        .collect())
}

async fn remove_volume(engine: &Engine, name: Name) -> Result<(), EngineError> {
    let object = marks::object(name);
    let removed = engine
        .api()
        .remove_volume(&object, None::<RemoveVolumeOptions>);
    match engine.call("remove a volume", removed).await {
        Err(error) if error.is_missing() => Ok(()),
        removed => removed,
    }
}

/// Returns the limits that are beyond the engine's machine.
fn beyond(settings: &DockerSettings, facts: &Facts) -> Vec<Problem> {
    let mut problems = Vec::new();
    let has = |what: &str, wanted: String, there: String, key: &str| Problem {
        what: format!("the sandbox should have {wanted} {what}, the engine's machine has {there}"),
        fix: format!("lower `{key}` in `ralph.toml` or `sandbox_resources` in the task file"),
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "no machine has so many processors"
    )]
    if settings.limits.cpus_on(facts) > facts.cpus as f64 {
        let wanted = settings.limits.cpus_on(facts).to_string();
        problems.push(has("processors", wanted, facts.cpus.to_string(), "cpus"));
    }
    if settings.limits.memory_on(facts) > facts.memory {
        let gibibytes = |bytes: u64| {
            let tenths = bytes / ((1 << 30) / 10);
            format!("{}.{} GiB", tenths / 10, tenths % 10)
        };
        let wanted = gibibytes(settings.limits.memory_on(facts));
        problems.push(has("of memory", wanted, gibibytes(facts.memory), "memory"));
    }
    problems
}

fn refused(error: &EngineError) -> SandboxError {
    SandboxError::Provider(error.problem())
}
