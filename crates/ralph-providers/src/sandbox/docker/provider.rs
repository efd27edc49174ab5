//! Creates, finds and lists Docker sandboxes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};
use ralph_core::ports::{
    Isolation, Labels, ProviderProblem, Sandbox, SandboxError, SandboxId, SandboxInfo,
    SandboxProvider, SandboxSpec,
};
use ralph_guest::best_effort;
use ralph_guest::command::SandboxName;
use tokio::sync::OnceCell;

use super::container::{Container, ContainerError};
use super::guest_connection::GuestConnection;
use super::guest_volume;
use super::labels::{self, SANDBOX_LABEL, STATE_LABEL, SandboxLabels};
use super::sandbox::DockerSandbox;
use super::settings::{DockerSettings, DockerTransport};
use crate::docker::{DockerEngine, DockerError, DockerInfo, go_architecture};
use crate::owner_process::OwnerProcess;
use crate::sandbox::egress::SandboxEgress;

/// Runs sandboxes as containers of a Docker Engine.
pub struct DockerProvider {
    pub(super) settings: DockerSettings,
    egress: Option<Arc<dyn SandboxEgress>>,
    /// Set on the first successful connection.
    engine: OnceCell<(DockerEngine, DockerInfo)>,
    /// Set once the Docker Engine has the image and the guest program.
    prepared: OnceCell<()>,
}

/// A sandbox on the Docker Engine, created by any ralph process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingSandbox {
    pub id: SandboxId,
    pub labels: Labels,
    /// The state directory of the sandbox.
    pub state_directory: PathBuf,
    /// Whether the process that created it, or last took it over, is known to have ended.
    pub is_orphaned: bool,
    /// The creation time, in the Docker Engine's format.
    pub created: Option<String>,
}

impl DockerProvider {
    /// Creates a provider. Does not contact the Docker Engine yet.
    pub fn new(settings: DockerSettings) -> Self {
        Self {
            settings,
            egress: None,
            engine: OnceCell::new(),
            prepared: OnceCell::new(),
        }
    }

    /// Routes outbound connections of commands through `egress`.
    #[must_use]
    pub fn with_egress(mut self, egress: Arc<dyn SandboxEgress>) -> Self {
        self.egress = Some(egress);
        self
    }

    /// Returns the sandboxes of every ralph process that uses this Docker Engine.
    pub async fn list_all(&self) -> Result<Vec<ExistingSandbox>, DockerError> {
        let (engine, _) = self.engine().await?;
        let mut owners = container_owners(engine).await?;
        let mut found: Vec<ExistingSandbox> = list_volumes(engine, &[SANDBOX_LABEL.to_owned()])
            .await?
            .into_iter()
            .map(|(name, sandbox_labels, created)| ExistingSandbox {
                id: labels::sandbox_id(name),
                labels: sandbox_labels.labels,
                state_directory: sandbox_labels.state.into(),
                is_orphaned: owners
                    .remove(&name)
                    .or(sandbox_labels.owner)
                    .is_some_and(|owner| owner.is_dead()),
                created,
            })
            .collect();
        found.sort_by(|a, b| a.id.0.cmp(&b.id.0));
        Ok(found)
    }

    /// Returns the image of a sandbox's container, if there is a container.
    pub async fn image_of(&self, id: &SandboxId) -> Result<Option<String>, DockerError> {
        let Some(name) = labels::parse_id(&id.0) else {
            return Ok(None);
        };
        let (engine, _) = self.engine().await?;
        let object = labels::object_name(name);
        let inspected = engine.api().inspect_container(&object, None);
        match engine.call("inspect a container", inspected).await {
            Ok(container) => Ok(container.config.and_then(|config| config.image)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a sandbox with all its data, running or not. A missing one is not an error.
    pub async fn discard(&self, id: &SandboxId) -> Result<(), SandboxError> {
        let Some(name) = labels::parse_id(&id.0) else {
            return Ok(());
        };
        let (engine, info) = self
            .engine()
            .await
            .map_err(|error| provider_error(&error))?;
        let spec = SandboxSpec::default();
        let sandbox_labels = SandboxLabels::from_spec(&spec, &self.settings.state_directory);
        let container = self.container((engine, info), name, sandbox_labels);
        let removed = container.remove().await;
        removed.map_err(|error| error.into_sandbox_error(&container))?;
        remove_volume(engine, name)
            .await
            .map_err(|error| provider_error(&error))
    }

    /// Returns the Docker Engine, connecting on the first call. It may not be prepared yet.
    async fn engine(&self) -> Result<&(DockerEngine, DockerInfo), DockerError> {
        self.engine
            .get_or_try_init(|| async {
                let engine = DockerEngine::connect(self.settings.host.as_deref()).await?;
                let info = engine.info().await?;
                Ok((engine, info))
            })
            .await
    }

    /// Returns the Docker Engine, prepared with the image and the guest program.
    async fn prepared_engine(&self) -> Result<&(DockerEngine, DockerInfo), DockerError> {
        let (engine, info) = self.engine().await?;
        self.prepared
            .get_or_try_init(|| async {
                // Checked before anything is created that needs the image.
                check_image(engine, info, &self.settings.image).await?;
                guest_volume::install(engine, &self.settings.image).await
            })
            .await?;
        self.engine().await
    }

    fn container(
        &self,
        (engine, info): (&DockerEngine, &DockerInfo),
        name: SandboxName,
        sandbox_labels: SandboxLabels,
    ) -> Container {
        let uses_socket = match self.settings.transport {
            DockerTransport::Auto => {
                info.is_local_socket && !info.is_desktop && cfg!(target_os = "linux")
            }
            DockerTransport::Attached => false,
        };
        let mut container = Container::new(
            engine.clone(),
            info.clone(),
            self.settings.clone(),
            name,
            sandbox_labels,
            uses_socket,
        );
        container.egress.clone_from(&self.egress);
        container
    }

    /// Creates and starts a sandbox; removes it again on failure.
    async fn create_and_start(
        &self,
        container: &Container,
    ) -> Result<GuestConnection, ContainerError> {
        let connection = async {
            container.create().await?;
            container.start().await
        };
        match connection.await {
            Ok(connection) => Ok(connection),
            Err(error) => {
                // The first error is the one to report; a failed cleanup is not.
                best_effort(container.remove().await);
                best_effort(remove_volume(&container.engine, container.name).await);
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

    async fn preflight(&self) -> Vec<ProviderProblem> {
        if !guest_volume::is_embedded() {
            return vec![ProviderProblem {
                what: "this ralph was built without the program that runs in containers".into(),
                fix: "build it on Linux, or with the target `<architecture>-unknown-linux-musl` of the Rust toolchain".into(),
            }];
        }
        let engine = match DockerEngine::connect(self.settings.host.as_deref()).await {
            Ok(engine) => engine,
            Err(error) => return vec![error.problem()],
        };
        match engine.info().await {
            Ok(info) => limit_problems(&self.settings, &info),
            Err(error) => vec![error.problem()],
        }
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        let (engine, info) = self
            .prepared_engine()
            .await
            .map_err(|error| provider_error(&error))?;
        let name = SandboxName::random();
        let sandbox_labels = SandboxLabels::from_spec(spec, &self.settings.state_directory);
        let container = self.container((engine, info), name, sandbox_labels);
        match self.create_and_start(&container).await {
            Ok(connection) => Ok(Box::new(DockerSandbox::new(
                labels::sandbox_id(name),
                container,
                connection,
            ))),
            Err(error) => Err(error.into_sandbox_error(&container)),
        }
    }

    async fn attach(&self, id: &SandboxId) -> Result<Option<Box<dyn Sandbox>>, SandboxError> {
        let Some(name) = labels::parse_id(&id.0) else {
            return Ok(None);
        };
        let (engine, info) = self
            .prepared_engine()
            .await
            .map_err(|error| provider_error(&error))?;
        let object = labels::object_name(name);
        let inspected = engine.api().inspect_volume(&object);
        let volume = match engine.call("inspect a volume", inspected).await {
            Ok(volume) => volume,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(provider_error(&error)),
        };
        let Some((_, sandbox_labels)) = SandboxLabels::from_docker(&volume.labels) else {
            return Ok(None);
        };
        // Checked again, because the old container is removed before the new one is created.
        let checked = check_image(engine, info, &self.settings.image).await;
        checked.map_err(|error| provider_error(&error))?;
        let container = self.container((engine, info), name, sandbox_labels.with_current_owner());
        match container.take_over().await {
            Ok(connection) => Ok(Some(Box::new(DockerSandbox::new(
                id.clone(),
                container,
                connection,
            )))),
            Err(error) => Err(error.into_sandbox_error(&container)),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let (engine, _) = self
            .engine()
            .await
            .map_err(|error| provider_error(&error))?;
        let state = format!("{STATE_LABEL}={}", self.settings.state_directory.display());
        let found = list_volumes(engine, &[SANDBOX_LABEL.to_owned(), state]).await;
        let mut infos: Vec<SandboxInfo> = found
            .map_err(|error| provider_error(&error))?
            .into_iter()
            .map(|(name, sandbox_labels, _)| SandboxInfo {
                id: labels::sandbox_id(name),
                labels: sandbox_labels.labels,
            })
            .collect();
        infos.sort_by(|a, b| a.id.0.cmp(&b.id.0));
        Ok(infos)
    }
}

/// Checks that the Docker Engine has the image, and that it is for its architecture.
async fn check_image(
    engine: &DockerEngine,
    info: &DockerInfo,
    image: &str,
) -> Result<(), DockerError> {
    let inspected = engine.api().inspect_image(image);
    let inspected = engine.call("inspect an image", inspected).await?;
    let has = inspected.architecture.unwrap_or_default();
    let has = go_architecture(&has);
    if has.is_empty() || has == info.architecture {
        return Ok(());
    }
    Err(DockerError::WrongArchitecture {
        image: image.to_owned(),
        has: has.to_owned(),
        needs: info.architecture.clone(),
    })
}

/// Returns the sandboxes whose volumes have all of these labels.
async fn list_volumes(
    engine: &DockerEngine,
    labels: &[String],
) -> Result<Vec<(SandboxName, SandboxLabels, Option<String>)>, DockerError> {
    let filters = HashMap::from([("label".to_owned(), labels.to_vec())]);
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let listed = engine.api().list_volumes(Some(options));
    let listed = engine.call("list the volumes", listed).await?;
    Ok(listed
        .volumes
        .unwrap_or_default()
        .into_iter()
        .filter_map(|volume| {
            let (name, sandbox_labels) = SandboxLabels::from_docker(&volume.labels)?;
            Some((name, sandbox_labels, volume.created_at))
        })
        .collect())
}

/// Returns the process that created each sandbox's container, which is the last one that took it
/// over.
async fn container_owners(
    engine: &DockerEngine,
) -> Result<BTreeMap<SandboxName, OwnerProcess>, DockerError> {
    let filters = HashMap::from([("label".to_owned(), vec![SANDBOX_LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let listed = engine.api().list_containers(Some(options));
    let listed = engine.call("list the containers", listed).await?;
    Ok(listed
        .into_iter()
        .filter_map(|container| SandboxLabels::from_docker(&container.labels?))
        .filter_map(|(name, sandbox_labels)| Some((name, sandbox_labels.owner?)))
        .collect())
}

async fn remove_volume(engine: &DockerEngine, name: SandboxName) -> Result<(), DockerError> {
    let object = labels::object_name(name);
    let removed = engine
        .api()
        .remove_volume(&object, None::<RemoveVolumeOptions>);
    match engine.call("remove a volume", removed).await {
        Err(error) if error.is_missing() => Ok(()),
        removed => removed,
    }
}

/// Returns the limits that exceed the Docker Engine's machine.
fn limit_problems(settings: &DockerSettings, info: &DockerInfo) -> Vec<ProviderProblem> {
    let mut problems = Vec::new();
    let problem = |what: &str, wanted: String, available: String, key: &str| ProviderProblem {
        what: format!(
            "the sandbox is configured for {wanted} {what}, but the Docker Engine's machine has {available}"
        ),
        fix: format!("lower `{key}` in `ralph.toml` or `sandbox_resources` in the task file"),
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "no machine has that many processors"
    )]
    if settings.limits.cpus_on(info) > info.cpus as f64 {
        let wanted = settings.limits.cpus_on(info).to_string();
        problems.push(problem("processors", wanted, info.cpus.to_string(), "cpus"));
    }
    if settings.limits.memory_on(info) > info.memory {
        let gibibytes = |bytes: u64| {
            let tenths = bytes / ((1 << 30) / 10);
            format!("{}.{} GiB", tenths / 10, tenths % 10)
        };
        let wanted = gibibytes(settings.limits.memory_on(info));
        problems.push(problem(
            "of memory",
            wanted,
            gibibytes(info.memory),
            "memory",
        ));
    }
    problems
}

fn provider_error(error: &DockerError) -> SandboxError {
    SandboxError::Provider(error.problem())
}
