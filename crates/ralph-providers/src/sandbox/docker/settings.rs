//! What Docker sandboxes are made from.

use std::path::PathBuf;

use crate::docker::DockerInfo;

/// How the guest in a container is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DockerTransport {
    /// By a socket where the engine is on this machine, otherwise by the container's own input and
    /// output.
    Auto,
    /// By the container's own input and output, as with an engine on another machine.
    Attached,
}

/// What a sandbox may use of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DockerLimits {
    /// Processors; none means as many as are usual and there are.
    pub cpus: Option<f64>,
    /// Bytes of memory; none means as much as is usual and there is.
    pub memory: Option<u64>,
    /// Bytes that the workspace may hold.
    pub disk: u64,
    /// Processes and threads.
    pub processes: u32,
}

/// Processors of a sandbox unless it is said.
const DEFAULT_CPUS: f64 = 4.0;
/// Memory of a sandbox unless it is said.
const DEFAULT_MEMORY: u64 = 8 << 30;

impl Default for DockerLimits {
    fn default() -> Self {
        Self {
            cpus: None,
            memory: None,
            disk: 20 << 30,
            processes: 512,
        }
    }
}

impl DockerLimits {
    /// Returns the processors on this machine.
    #[expect(
        clippy::cast_precision_loss,
        reason = "no machine has so many processors"
    )]
    pub(super) fn cpus_on(&self, facts: &DockerInfo) -> f64 {
        self.cpus
            .unwrap_or(DEFAULT_CPUS.min(facts.cpus.max(1) as f64))
    }

    /// Returns the memory on this machine.
    pub(super) fn memory_on(&self, facts: &DockerInfo) -> u64 {
        self.memory.unwrap_or(DEFAULT_MEMORY.min(facts.memory))
    }
}

/// What Docker sandboxes are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerSettings {
    /// The engine, as `DOCKER_HOST` writes it; none means the default socket.
    pub host: Option<String>,
    /// The image of the containers.
    pub image: String,
    /// What each may use.
    pub limits: DockerLimits,
    /// Whether everything but the workspace and the temporary directories is read-only.
    pub read_only: bool,
    /// The state directory, which sandboxes belong to.
    pub state_directory: PathBuf,
    /// How the guests are reached.
    pub transport: DockerTransport,
}

impl DockerSettings {
    /// Returns the settings of sandboxes from `image` that belong to the state directory `state`.
    pub fn new(image: impl Into<String>, state: impl Into<PathBuf>) -> Self {
        let state = state.into();
        Self {
            host: None,
            image: image.into(),
            limits: DockerLimits::default(),
            read_only: true,
            state_directory: std::path::absolute(&state).unwrap_or(state),
            transport: DockerTransport::Auto,
        }
    }

    /// Returns the directory of a sandbox's socket.
    pub(super) fn socket_directory(&self, object: &str) -> PathBuf {
        self.state_directory.join("sockets").join(object)
    }
}
