//! The settings of Docker sandboxes.

use std::path::PathBuf;

use crate::docker::DockerInfo;

/// The transport to the guest in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DockerTransport {
    /// A socket if the Docker Engine runs on this machine, otherwise the container's standard input
    /// and output.
    Auto,
    /// The container's standard input and output, as with a remote Docker Engine.
    Attached,
}

/// The resource limits of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DockerLimits {
    /// Number of processors; defaults to 4 or as many as there are.
    pub cpus: Option<f64>,
    /// In bytes; defaults to 8 GiB or as much as there is.
    pub memory: Option<u64>,
    /// Maximum size of the workspace, in bytes.
    pub disk: u64,
    /// Maximum number of processes and threads.
    pub processes: u32,
}

/// Default number of processors.
const DEFAULT_CPUS: f64 = 4.0;
/// Default memory, in bytes.
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
    /// Returns the number of processors on a given machine.
    #[expect(
        clippy::cast_precision_loss,
        reason = "no machine has that many processors"
    )]
    pub(super) fn cpus_on(&self, info: &DockerInfo) -> f64 {
        self.cpus
            .unwrap_or(DEFAULT_CPUS.min(info.cpus.max(1) as f64))
    }

    /// Returns the memory on a given machine.
    pub(super) fn memory_on(&self, info: &DockerInfo) -> u64 {
        self.memory.unwrap_or(DEFAULT_MEMORY.min(info.memory))
    }
}

/// The settings of Docker sandboxes.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerSettings {
    /// In the format of `DOCKER_HOST`; `None` means the default socket.
    pub host: Option<String>,
    pub image: String,
    pub limits: DockerLimits,
    /// Whether everything except the workspace and the temporary directories is read-only.
    pub read_only: bool,
    /// The state directory that owns the sandboxes.
    pub state_directory: PathBuf,
    pub transport: DockerTransport,
}

impl DockerSettings {
    /// Returns the default settings for `image` and the state directory `state`.
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
