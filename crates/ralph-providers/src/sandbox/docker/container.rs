//! The lifecycle of a sandbox's container. The sandbox is the volume; its container is replaceable.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::container::AttachContainerResults;
use bollard::models::ContainerState;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, KillContainerOptionsBuilder,
    LogsOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use ralph_guest::best_effort;
use ralph_guest::command::SandboxName;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use super::container_spec::ContainerSpec;
use super::guest_connection::GuestConnection;
use super::guest_socket::GuestSocket;
use super::labels::{self, SandboxLabels};
use super::settings::DockerSettings;
use crate::docker::{DockerEngine, DockerError, DockerInfo};
use crate::sandbox::egress::SandboxEgress;

/// Time limit for the guest's first response and for the egress setup.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often to check whether the container still runs, or whether it has been removed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit while another process removes or creates the container.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of log lines shown.
const LOG_LINES: &str = "20";

/// Why a container cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerError {
    /// The container does not exist.
    #[error("its container has been removed")]
    Missing,
    /// The container was created by another ralph process.
    #[error("another ralph process uses it now")]
    TakenOver,
    /// The Docker Engine failed.
    #[error(transparent)]
    Engine(#[from] DockerError),
    /// The guest does not respond.
    #[error("the guest in its container does not respond: {source}{log}")]
    Guest {
        source: io::Error,
        /// The end of the container's log, after a separator.
        log: String,
    },
    /// The guest socket could not be created.
    #[error("cannot create a socket in `{}`: {source}", directory.display())]
    Socket {
        directory: PathBuf,
        source: io::Error,
    },
}

/// The container of a sandbox, which may not exist yet.
pub(super) struct Container {
    pub(super) engine: DockerEngine,
    pub(super) engine_info: DockerInfo,
    pub(super) settings: DockerSettings,
    pub(super) name: SandboxName,
    pub(super) labels: SandboxLabels,
    object: String,
    /// The directory of the guest socket on this machine, if the guest uses one.
    socket: Option<PathBuf>,
    /// Serves the outbound connections of commands.
    pub(super) egress: Option<Arc<dyn SandboxEgress>>,
    /// The Docker id of the container created by this process. Another one with the same name
    /// belongs to another ralph process that has taken over the sandbox.
    created_id: Mutex<Option<String>>,
    /// Whether a command ran out of memory since the container started. From then on the Docker
    /// Engine reports that for the whole container, whatever ends it later.
    out_of_memory: AtomicBool,
}

impl Container {
    pub(super) fn new(
        engine: DockerEngine,
        engine_info: DockerInfo,
        settings: DockerSettings,
        name: SandboxName,
        labels: SandboxLabels,
        uses_socket: bool,
    ) -> Self {
        let object = labels::object_name(name);
        let socket = uses_socket.then(|| settings.socket_directory(&object));
        Self {
            engine,
            engine_info,
            settings,
            name,
            labels,
            object,
            socket,
            egress: None,
            created_id: Mutex::new(None),
            out_of_memory: AtomicBool::new(false),
        }
    }

    /// Creates the container without starting it, and the volume if it is missing.
    pub(super) async fn create(&self) -> Result<(), ContainerError> {
        if let Some(directory) = &self.socket {
            GuestSocket::create_directory(directory)
                .map_err(|source| socket_error(directory, source))?;
        }
        let spec = ContainerSpec {
            name: self.name,
            labels: &self.labels,
            settings: &self.settings,
            engine_info: &self.engine_info,
            socket: self.socket.as_deref(),
        };
        let options = CreateContainerOptionsBuilder::new()
            .name(&self.object)
            .build();
        let api = self.engine.api();
        let created = api.create_container(Some(options), spec.create_body());
        let created = self.engine.call("create a container", created).await?;
        *self
            .created_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(created.id);
        Ok(())
    }

    /// Starts the container and connects to its guest.
    pub(super) async fn start(&self) -> Result<GuestConnection, ContainerError> {
        let connection = if let Some(directory) = &self.socket {
            let socket = GuestSocket::bind(directory);
            let socket = socket.map_err(|source| socket_error(directory, source))?;
            self.start_container().await?;
            let stream = self.accept_guest(&socket).await?;
            timeout(START_TIMEOUT, GuestConnection::from_socket(stream)).await
        } else {
            // Attaches before the start, so that no output is lost.
            let attached = self.attach().await?;
            self.start_container().await?;
            timeout(START_TIMEOUT, GuestConnection::from_attached(attached)).await
        };
        match connection.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(connection) => self.connect_egress(connection).await,
            Err(source) => Err(self.no_answer_error(source).await),
        }
    }

    async fn start_container(&self) -> Result<(), ContainerError> {
        let id = self.container_ref();
        let started = self.engine.api().start_container(&id, None);
        self.call("start a container", started).await?;
        self.out_of_memory.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Records that a command ran out of memory.
    pub(super) fn record_out_of_memory(&self) {
        self.out_of_memory.store(true, Ordering::Relaxed);
    }

    /// Returns whether a command ran out of memory since the container started.
    pub(super) fn was_out_of_memory(&self) -> bool {
        self.out_of_memory.load(Ordering::Relaxed)
    }

    async fn attach(&self) -> Result<AttachContainerResults, ContainerError> {
        let options = AttachContainerOptionsBuilder::new()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let id = self.container_ref();
        let attached = self.engine.api().attach_container(&id, Some(options));
        self.call("attach to a container", attached).await
    }

    /// Waits for the guest and accepts only the container's first process.
    async fn accept_guest(&self, socket: &GuestSocket) -> Result<UnixStream, ContainerError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let accepted = match timeout(POLL_INTERVAL, socket.accept()).await {
                Ok(Ok(accepted)) => Some(accepted),
                Ok(Err(source)) => return Err(self.no_answer_error(source).await),
                Err(_) => None,
            };
            let state = self.state().await?;
            if let Some((stream, process)) = accepted {
                if process == state.pid {
                    return Ok(stream);
                }
            } else if state.running != Some(true) {
                return Err(self
                    .no_answer_error(io::ErrorKind::NotConnected.into())
                    .await);
            }
            if Instant::now() > deadline {
                return Err(self.no_answer_error(io::ErrorKind::TimedOut.into()).await);
            }
        }
    }

    /// Routes outbound connections of commands to the egress handler.
    async fn connect_egress(
        &self,
        mut connection: GuestConnection,
    ) -> Result<GuestConnection, ContainerError> {
        let Some(egress) = &self.egress else {
            return Ok(connection);
        };
        match connection
            .set_up_egress(egress.clone(), START_TIMEOUT)
            .await
        {
            Ok(()) => Ok(connection),
            Err(source) => Err(self.no_answer_error(source).await),
        }
    }

    /// Restarts a container that has ended; recreates it if that fails.
    pub(super) async fn restart(&self) -> Result<GuestConnection, ContainerError> {
        match self.start().await {
            Err(ContainerError::Missing) => Err(ContainerError::Missing),
            Err(_) => {
                self.remove_object(&self.container_ref()).await?;
                self.create().await?;
                self.start().await
            }
            Ok(connection) => Ok(connection),
        }
    }

    /// Replaces any existing container, including those of other processes.
    pub(super) async fn take_over(&self) -> Result<GuestConnection, ContainerError> {
        let deadline = Instant::now() + REMOVE_TIMEOUT;
        loop {
            self.remove_object(&self.object).await?;
            match self.create().await {
                // Another ralph process is doing the same; the last one wins.
                Err(ContainerError::Engine(error))
                    if error.is_conflict() && Instant::now() < deadline => {}
                Err(error) => return Err(error),
                Ok(()) => return self.start().await,
            }
        }
    }

    /// Stops all processes of the container, including the guest.
    pub(super) async fn pause(&self) -> Result<(), ContainerError> {
        let id = self.container_ref();
        let paused = self.engine.api().pause_container(&id);
        self.call("pause a container", paused).await
    }

    /// Continues all processes of the container. Does nothing unless it is paused.
    pub(super) async fn unpause(&self) -> Result<(), ContainerError> {
        if self.state().await?.paused != Some(true) {
            return Ok(());
        }
        let id = self.container_ref();
        let continued = self.engine.api().unpause_container(&id);
        self.call("unpause a container", continued).await
    }

    /// Kills everything in the container, even if it is paused.
    pub(super) async fn kill(&self) -> Result<(), ContainerError> {
        let api = self.engine.api();
        let id = self.container_ref();
        best_effort(self.unpause().await);
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let killed = api.kill_container(&id, Some(options));
        match self.call("kill a container", killed).await {
            Err(ContainerError::Engine(error)) if error.is_conflict() => Ok(()),
            killed => killed,
        }
    }

    /// Removes the container, running or not, even if another process created it. A missing one is
    /// not an error.
    pub(super) async fn remove(&self) -> Result<(), ContainerError> {
        self.remove_object(&self.object).await?;
        if let Some(directory) = &self.socket {
            // A directory that remains does no harm.
            best_effort(std::fs::remove_dir_all(directory));
        }
        Ok(())
    }

    async fn remove_object(&self, object: &str) -> Result<(), ContainerError> {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        let deadline = Instant::now() + REMOVE_TIMEOUT;
        loop {
            let api = self.engine.api();
            let removed = api.remove_container(object, Some(options.clone()));
            match self.call("remove a container", removed).await {
                Ok(()) | Err(ContainerError::Missing) => return Ok(()),
                // Another process is already removing it.
                Err(ContainerError::Engine(error))
                    if error.is_conflict() && Instant::now() < deadline =>
                {
                    sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether another container has replaced this one.
    pub(super) async fn is_replaced(&self) -> Result<bool, ContainerError> {
        let inspected = self.engine.api().inspect_container(&self.object, None);
        match self.call("inspect a container", inspected).await {
            Ok(found) => Ok(found.id.is_some_and(|id| id != self.container_ref())),
            Err(ContainerError::Missing) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Inspects the container.
    pub(super) async fn state(&self) -> Result<ContainerState, ContainerError> {
        let id = self.container_ref();
        let inspected = self.engine.api().inspect_container(&id, None);
        let container = self.call("inspect a container", inspected).await?;
        Ok(container.state.unwrap_or_default())
    }

    /// Returns the end of the container's log after a separator, or nothing if the log is empty.
    pub(super) async fn log(&self) -> String {
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail(LOG_LINES)
            .build();
        let mut chunks = self.engine.api().logs(&self.container_ref(), Some(options));
        let mut text = String::new();
        let gather = async {
            while let Some(Ok(chunk)) = chunks.next().await {
                text.push_str(&chunk.to_string());
            }
        };
        // An error is reported even if the log cannot be read in time.
        best_effort(timeout(Duration::from_secs(2), gather).await);
        match text.trim() {
            "" => String::new(),
            log => format!("; container log: {}", log.replace('\n', " | ")),
        }
    }

    /// Returns the id, or else the name, of the container created by this process.
    fn container_ref(&self) -> String {
        let id = self
            .created_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        id.clone().unwrap_or_else(|| self.object.clone())
    }

    async fn no_answer_error(&self, source: io::Error) -> ContainerError {
        let log = self.log().await;
        ContainerError::Guest { source, log }
    }

    async fn call<T>(
        &self,
        doing: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, ContainerError> {
        match self.engine.call(doing, call).await {
            Ok(answer) => Ok(answer),
            Err(error) if error.is_missing() => Err(ContainerError::Missing),
            Err(error) => Err(error.into()),
        }
    }
}

fn socket_error(directory: &Path, source: io::Error) -> ContainerError {
    ContainerError::Socket {
        directory: directory.to_owned(),
        source,
    }
}
