//! The life of a sandbox's container. The volume is the sandbox; a container comes and goes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerState, ContainerStateStatusEnum as Status};
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, KillContainerOptionsBuilder,
    LogsOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use ralph_guest::command::Name;
use tokio::time::Instant;

use super::form::{Form, SOCKET};
use super::line::Line;
use super::marks::{self, Marks};
use super::settings::DockerSettings;
use crate::docker::{Engine, EngineError, Facts};
use crate::sandbox::door::Door;

/// How long a guest may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(30);
/// How long to wait before a guest that is not there yet is called again.
const CALL_AGAIN: Duration = Duration::from_millis(1);
/// After so many calls it is looked whether the container still runs.
const LOOK_AFTER: u32 = 100;
/// How many lines of a container's log are shown.
const LOG_LINES: &str = "20";

/// Why a container cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerError {
    /// There is no container.
    #[error("its container has been removed")]
    Missing,
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The guest does not answer; with what the container said.
    #[error("the guest in its container does not answer: {source}{said}")]
    Guest {
        /// What was seen of it.
        source: io::Error,
        /// The end of the container's log, after a separator.
        said: String,
    },
    /// The directory of the socket.
    #[error("cannot make `{}`: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A container by its sandbox, whether it is there or not.
pub(super) struct Container {
    pub(super) engine: Engine,
    pub(super) facts: Facts,
    pub(super) settings: DockerSettings,
    pub(super) name: Name,
    pub(super) marks: Marks,
    object: String,
    /// The directory of the socket on this machine, where the guest is reached by one.
    socket: Option<PathBuf>,
    /// Who answers what commands connect to.
    pub(super) door: Option<Arc<dyn Door>>,
}

impl Container {
    pub(super) fn new(
        engine: Engine,
        facts: Facts,
        settings: DockerSettings,
        name: Name,
        marks: Marks,
        by_socket: bool,
    ) -> Self {
        let object = marks::object(name);
        let socket = by_socket.then(|| settings.socket_directory(&object));
        Self {
            engine,
            facts,
            settings,
            name,
            marks,
            object,
            socket,
            door: None,
        }
    }

    /// Makes the container, which does not run yet.
    pub(super) async fn create(&self) -> Result<(), ContainerError> {
        if let Some(directory) = &self.socket {
            make_private(directory).map_err(|source| ContainerError::Directory {
                path: directory.clone(),
                source,
            })?;
        }
        let form = Form {
            name: self.name,
            marks: &self.marks,
            settings: &self.settings,
            facts: &self.facts,
            socket: self.socket.as_deref(),
        };
        let options = CreateContainerOptionsBuilder::new()
            .name(&self.object)
            .build();
        let created = self
            .engine
            .api()
            .create_container(Some(options), form.body());
        self.engine.call("make a container", created).await?;
        Ok(())
    }

    /// Starts the container and speaks to its guest.
    pub(super) async fn start(&self) -> Result<Line, ContainerError> {
        // Attached before, so that not a byte of what it says is missed.
        let attached = match self.socket {
            Some(_) => None,
            None => Some(self.attach().await?),
        };
        let started = self.engine.api().start_container(&self.object, None);
        self.call("start a container", started).await?;
        match attached {
            None => self.connect().await,
            Some(attached) => match Line::attached(attached).await {
                Ok(line) => self.admit(line).await,
                Err(source) => Err(self.silent(source).await),
            },
        }
    }

    async fn attach(&self) -> Result<bollard::container::AttachContainerResults, ContainerError> {
        let options = AttachContainerOptionsBuilder::new()
            .stream(true)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .build();
        let attached = self
            .engine
            .api()
            .attach_container(&self.object, Some(options));
        self.call("attach to a container", attached).await
    }

    /// Connects to the guest of a container that runs.
    async fn connect(&self) -> Result<Line, ContainerError> {
        let directory = self.socket.as_deref().unwrap_or(Path::new("/"));
        let deadline = Instant::now() + FIRST_ANSWER;
        let mut process = self.state().await?.pid;
        let mut calls = 0;
        loop {
            let source = match Line::by_socket(directory, SOCKET, process).await {
                Ok(line) => return self.admit(line).await,
                Err(source) => source,
            };
            calls += 1;
            if calls % LOOK_AFTER == 0 {
                let state = self.state().await?;
                process = state.pid;
                if !is_running(&state) {
                    return Err(self.silent(source).await);
                }
            }
            if Instant::now() > deadline {
                return Err(self.silent(source).await);
            }
            tokio::time::sleep(CALL_AGAIN).await;
        }
    }

    /// Lets commands connect to whoever answers them.
    async fn admit(&self, mut line: Line) -> Result<Line, ContainerError> {
        let admitted = match &self.door {
            Some(door) => line.admit(door.clone()).await,
            None => Ok(()),
        };
        match admitted {
            Ok(()) => Ok(line),
            Err(source) => Err(self.silent(source).await),
        }
    }

    /// Brings the container into its working state, whatever state it is in, with nothing of an
    /// earlier conversation left in it. A container that is missing is made again.
    pub(super) async fn revive(&self) -> Result<Line, ContainerError> {
        let state = match self.state().await {
            Ok(state) => state,
            Err(ContainerError::Missing) => return self.recreate().await,
            Err(error) => return Err(error),
        };
        match state.status {
            Some(Status::RUNNING) if self.socket.is_some() => match self.connect().await {
                Ok(line) => Ok(line),
                // Stuck, or there is something else at the other end.
                Err(_) => self.recreate().await,
            },
            Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING) => {
                self.kill().await?;
                self.start_again().await
            }
            Some(Status::CREATED | Status::EXITED | Status::STOPPING) => self.start_again().await,
            Some(Status::REMOVING | Status::DEAD | Status::EMPTY) | None => self.recreate().await,
        }
    }

    async fn start_again(&self) -> Result<Line, ContainerError> {
        match self.start().await {
            Ok(line) => Ok(line),
            Err(_) => self.recreate().await,
        }
    }

    async fn recreate(&self) -> Result<Line, ContainerError> {
        self.remove().await?;
        self.create().await?;
        self.start().await
    }

    /// Ends everything in the container; a paused one too.
    pub(super) async fn kill(&self) -> Result<(), ContainerError> {
        let api = self.engine.api();
        // Only one that is paused can be let go on.
        self.call("unpause a container", api.unpause_container(&self.object))
            .await
            .ok();
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
        let killed = api.kill_container(&self.object, Some(options));
        match self.call("kill a container", killed).await {
            Err(ContainerError::Engine(error)) if error.is_conflict() => Ok(()),
            killed => killed,
        }
    }

    /// Removes the container, running or not. A missing one is fine.
    pub(super) async fn remove(&self) -> Result<(), ContainerError> {
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        let api = self.engine.api();
        let deadline = Instant::now() + FIRST_ANSWER;
        loop {
            let removed = api.remove_container(&self.object, Some(options.clone()));
            match self.call("remove a container", removed).await {
                Ok(()) => break,
                Err(ContainerError::Missing) => break,
                // It is being removed by somebody else.
                Err(ContainerError::Engine(error))
                    if error.is_conflict() && Instant::now() < deadline =>
                {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(directory) = &self.socket {
            // A directory that stays is empty and in nobody's way.
            std::fs::remove_dir_all(directory).ok();
        }
        Ok(())
    }

    /// Returns what the engine says about the container.
    pub(super) async fn state(&self) -> Result<ContainerState, ContainerError> {
        let inspected = self.engine.api().inspect_container(&self.object, None);
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
        let mut pieces = self.engine.api().logs(&self.object, Some(options));
        let mut text = String::new();
        let gather = async {
            while let Some(Ok(piece)) = pieces.next().await {
                text.push_str(&piece.to_string());
            }
        };
        // Without its log an error is still an error.
        tokio::time::timeout(Duration::from_secs(2), gather)
            .await
            .ok();
        match text.trim() {
            "" => String::new(),
            said => format!("; its container said: {}", said.replace('\n', " | ")),
        }
    }

    async fn silent(&self, source: io::Error) -> ContainerError {
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

fn is_running(state: &ContainerState) -> bool {
    state.running == Some(true)
}

fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(directory)
}
