//! The life of a sandbox's container. The volume is the sandbox; a container comes and goes.

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

/// How long a guest may take to answer for the first time, and to make the way out ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is looked meanwhile whether the container still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long something that is being removed may take to disappear.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many lines of a container's log are shown.
const LOG_LINES: &str = "20";

/// Why a container cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerError {
    /// There is no container.
    #[error("its container has been removed")]
    Missing,
    /// There is one, but another ralph made it.
    #[error("another ralph uses it now")]
    TakenOver,
    /// The engine.
    #[error(transparent)]
    Engine(#[from] DockerError),
    /// The guest does not answer; with what the container said.
    #[error("the guest in its container does not answer: {source}{said}")]
    Guest {
        /// What was seen of it.
        source: io::Error,
        /// The end of the container's log, after a separator.
        said: String,
    },
    /// The socket for the guest.
    #[error("cannot listen in `{}`: {source}", directory.display())]
    Door {
        /// The directory of the socket.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A container by its sandbox, whether it is there or not.
pub(super) struct Container {
    pub(super) engine: DockerEngine,
    pub(super) engine_info: DockerInfo,
    pub(super) settings: DockerSettings,
    pub(super) name: SandboxName,
    pub(super) labels: SandboxLabels,
    object: String,
    /// The directory of the socket on this machine, where the guest is reached by one.
    socket: Option<PathBuf>,
    /// Who answers what commands connect to.
    pub(super) egress: Option<Arc<dyn SandboxEgress>>,
    /// The engine's number of the container that this process has made. Another one of the same
    /// name is another ralph's, which has taken the sandbox over.
    created_id: Mutex<Option<String>>,
    /// Whether a command ran out of memory since the container was started. The engine says so
    /// about the whole container then, whatever ends it later.
    out_of_memory: AtomicBool,
}

impl Container {
    pub(super) fn new(
        engine: DockerEngine,
        facts: DockerInfo,
        settings: DockerSettings,
        name: SandboxName,
        marks: SandboxLabels,
        by_socket: bool,
    ) -> Self {
        let object = labels::object_name(name);
        let socket = by_socket.then(|| settings.socket_directory(&object));
        Self {
            engine,
            engine_info: facts,
            settings,
            name,
            labels: marks,
            object,
            socket,
            egress: None,
            created_id: Mutex::new(None),
            out_of_memory: AtomicBool::new(false),
        }
    }

    /// Makes the container, which does not run yet, and with it the volume, if there is none.
    pub(super) async fn create(&self) -> Result<(), ContainerError> {
        if let Some(directory) = &self.socket {
            GuestSocket::create_directory(directory)
                .map_err(|source| socket_error(directory, source))?;
        }
        let form = ContainerSpec {
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
        let created = api.create_container(Some(options), form.create_body());
        let created = self.engine.call("make a container", created).await?;
        *self
            .created_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(created.id);
        Ok(())
    }

    /// Starts the container and speaks to its guest.
    pub(super) async fn start(&self) -> Result<GuestConnection, ContainerError> {
        let line = if let Some(directory) = &self.socket {
            let door = GuestSocket::bind(directory);
            let door = door.map_err(|source| socket_error(directory, source))?;
            self.start_container().await?;
            let socket = self.accept_guest(&door).await?;
            timeout(START_TIMEOUT, GuestConnection::from_socket(socket)).await
        } else {
            // Attached before, so that not a byte of what it says is missed.
            let attached = self.attach().await?;
            self.start_container().await?;
            timeout(START_TIMEOUT, GuestConnection::from_attached(attached)).await
        };
        match line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(line) => self.connect_egress(line).await,
            Err(source) => Err(self.no_answer_error(source).await),
        }
    }

    async fn start_container(&self) -> Result<(), ContainerError> {
        let own = self.container_ref();
        let started = self.engine.api().start_container(&own, None);
        self.call("start a container", started).await?;
        self.out_of_memory.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Remembers that a command ran out of memory.
    pub(super) fn record_out_of_memory(&self) {
        self.out_of_memory.store(true, Ordering::Relaxed);
    }

    /// Tells whether a command ran out of memory since the container was started.
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
        let own = self.container_ref();
        let attached = self.engine.api().attach_container(&own, Some(options));
        self.call("attach to a container", attached).await
    }

    /// Waits for the guest, which is the first process of the container and nobody else.
    async fn accept_guest(&self, door: &GuestSocket) -> Result<UnixStream, ContainerError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let visitor = match timeout(POLL_INTERVAL, door.accept()).await {
                Ok(Ok(visitor)) => Some(visitor),
                Ok(Err(source)) => return Err(self.no_answer_error(source).await),
                Err(_) => None,
            };
            let state = self.state().await?;
            if let Some((socket, process)) = visitor {
                if process == state.pid {
                    return Ok(socket);
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

    /// Lets commands connect to whoever answers them.
    async fn connect_egress(
        &self,
        mut line: GuestConnection,
    ) -> Result<GuestConnection, ContainerError> {
        let Some(way_out) = &self.egress else {
            return Ok(line);
        };
        match line.set_up_egress(way_out.clone(), START_TIMEOUT).await {
            Ok(()) => Ok(line),
            Err(source) => Err(self.no_answer_error(source).await),
        }
    }

    /// Starts the container again, which has ended; one that does not start is made again.
    pub(super) async fn restart(&self) -> Result<GuestConnection, ContainerError> {
        match self.start().await {
            Err(ContainerError::Missing) => Err(ContainerError::Missing),
            Err(_) => {
                self.remove_object(&self.container_ref()).await?;
                self.create().await?;
                self.start().await
            }
            Ok(line) => Ok(line),
        }
    }

    /// Puts a new container in the place of whatever is there, whoever has made it.
    pub(super) async fn take_over(&self) -> Result<GuestConnection, ContainerError> {
        let deadline = Instant::now() + REMOVE_TIMEOUT;
        loop {
            self.remove_object(&self.object).await?;
            match self.create().await {
                // Another ralph does the same at this moment; the last one has it.
                Err(ContainerError::Engine(error))
                    if error.is_conflict() && Instant::now() < deadline => {}
                Err(error) => return Err(error),
                Ok(()) => return self.start().await,
            }
        }
    }

    /// Ends everything in the container; a paused one too.
    pub(super) async fn kill(&self) -> Result<(), ContainerError> {
        let api = self.engine.api();
        let own = self.container_ref();
        // Only one that is paused can be let go on.
        best_effort(
            self.call("unpause a container", api.unpause_container(&own))
                .await,
        );
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let killed = api.kill_container(&own, Some(options));
        match self.call("kill a container", killed).await {
            Err(ContainerError::Engine(error)) if error.is_conflict() => Ok(()),
            killed => killed,
        }
    }

    /// Removes the container, running or not and whoever has made it. A missing one is fine.
    pub(super) async fn remove(&self) -> Result<(), ContainerError> {
        self.remove_object(&self.object).await?;
        if let Some(directory) = &self.socket {
            // A directory that stays is empty and in nobody's way.
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
                // It is being removed by somebody else.
                Err(ContainerError::Engine(error))
                    if error.is_conflict() && Instant::now() < deadline =>
                {
                    sleep(POLL_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Tells whether another container is in this one's place.
    pub(super) async fn is_replaced(&self) -> Result<bool, ContainerError> {
        let inspected = self.engine.api().inspect_container(&self.object, None);
        match self.call("look at a container", inspected).await {
            Ok(found) => Ok(found.id.is_some_and(|id| id != self.container_ref())),
            Err(ContainerError::Missing) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns what the engine says about the container.
    pub(super) async fn state(&self) -> Result<ContainerState, ContainerError> {
        let own = self.container_ref();
        let inspected = self.engine.api().inspect_container(&own, None);
        let container = self.call("look at a container", inspected).await?;
        Ok(container.state.unwrap_or_default())
    }

    /// Returns the end of what the container said, after a separator; nothing if it said nothing.
    pub(super) async fn log(&self) -> String {
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail(LOG_LINES)
            .build();
        let mut pieces = self.engine.api().logs(&self.container_ref(), Some(options));
        let mut text = String::new();
        let gather = async {
            while let Some(Ok(piece)) = pieces.next().await {
                text.push_str(&piece.to_string());
            }
        };
        // Without its log an error is still an error.
        best_effort(timeout(Duration::from_secs(2), gather).await);
        match text.trim() {
            "" => String::new(),
            said => format!("; its container said: {}", said.replace('\n', " | ")),
        }
    }

    /// Returns how the engine knows the container that this process has made.
    fn container_ref(&self) -> String {
        let own = self
            .created_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        own.clone().unwrap_or_else(|| self.object.clone())
    }

    async fn no_answer_error(&self, source: io::Error) -> ContainerError {
        let said = self.log().await;
        ContainerError::Guest { source, said }
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
    ContainerError::Door {
        directory: directory.to_owned(),
        source,
    }
}
