//! What can be wrong with an engine or an image, and what a person does about it.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error;
use ralph_core::ports::ProviderProblem;

use super::address::DockerAddress;
use super::engine::MINIMUM_API;
use super::socket;

/// Why an engine did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// The address makes no sense.
    #[error("cannot use engine `{host}`: {rule}")]
    InvalidHost {
        /// The value of `DOCKER_HOST`.
        host: String,
        /// What it should be.
        rule: &'static str,
    },
    /// There is no socket.
    #[error("no Docker Engine runs here: there is no socket `{}`", path.display())]
    SocketMissing {
        /// Where it should be.
        path: PathBuf,
    },
    /// Nobody answers at the address.
    #[error("no Docker Engine answers at `{address}`: {why}")]
    NotRunning {
        /// Where it should listen.
        address: DockerAddress,
        /// What the machine says.
        why: String,
    },
    /// The socket belongs to others.
    #[error("you may not use the Docker Engine's socket `{}`: permission denied", path.display())]
    PermissionDenied {
        /// The socket.
        path: PathBuf,
        /// The group that may use it, where it can be seen.
        group: Option<String>,
    },
    /// The engine is older than what is spoken here.
    #[error(
        "the Docker Engine is too old: it speaks API {version}, at least {MINIMUM_API} is needed"
    )]
    ApiTooOld {
        /// Its version.
        version: String,
    },
    /// The engine runs containers of another system.
    #[error("the Docker Engine cannot be used: it runs `{os}` containers, `linux` is needed")]
    NotLinux {
        /// What it runs.
        os: String,
    },
    /// The engine has no such image.
    #[error("there is no image `{image}`")]
    ImageMissing {
        /// The image.
        image: String,
    },
    /// The image is for other machines.
    #[error(
        "image `{image}` cannot run here: it is for `{has}`, the Docker Engine's machine is `{needs}`"
    )]
    WrongArchitecture {
        /// The image.
        image: String,
        /// What it is for.
        has: String,
        /// What it should be for.
        needs: String,
    },
    /// The engine's disk is full.
    #[error(
        "cannot {doing}: no space left in `{data_root}`, where the Docker Engine keeps its data"
    )]
    NoSpace {
        /// What was being done.
        doing: String,
        /// The engine's directory.
        data_root: String,
    },
    /// The engine took too long.
    #[error("cannot {doing}: the Docker Engine did not answer within {} s", limit.as_secs())]
    Timeout {
        /// What was being done.
        doing: String,
        /// How long it had.
        limit: Duration,
    },
    /// Anything else, in the engine's own words.
    #[error("cannot {doing}: {}", root_message(source))]
    Call {
        /// What was being done.
        doing: String,
        /// What the client library says.
        source: Box<Error>,
    },
}

impl DockerError {
    /// Makes an error of a failed call to the engine at `address`.
    pub(super) fn from_call(doing: &str, address: &DockerAddress, error: Error) -> Self {
        if let Error::RequestTimeoutError = error {
            return Self::Timeout {
                doing: doing.to_owned(),
                limit: super::engine::CALL_TIMEOUT,
            };
        }
        if let Some(image) = missing_image(&error) {
            return Self::ImageMissing { image };
        }
        if let Some(failure) = connect_error(address, &error) {
            return failure;
        }
        Self::Call {
            doing: doing.to_owned(),
            source: Box::new(error),
        }
    }

    /// Tells whether the engine says that there is no such thing.
    pub fn is_missing(&self) -> bool {
        self.status() == Some(404)
    }

    /// Tells whether the engine says that the thing is in another state than the call needs.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// Returns the engine's number for what went wrong, where it gave one.
    fn status(&self) -> Option<u16> {
        match self {
            Self::Call { source, .. } => {
                if let Error::DockerResponseServerError { status_code, .. } = &**source {
                    Some(*status_code)
                } else {
                    None
                }
            }
            Self::InvalidHost { .. }
            | Self::SocketMissing { .. }
            | Self::NotRunning { .. }
            | Self::PermissionDenied { .. }
            | Self::ApiTooOld { .. }
            | Self::NotLinux { .. }
            | Self::ImageMissing { .. }
            | Self::WrongArchitecture { .. }
            | Self::NoSpace { .. }
            | Self::Timeout { .. } => None,
        }
    }

    /// Tells whether the engine's disk is full, by the engine's words.
    pub(super) fn is_disk_full(&self) -> bool {
        match self {
            Self::Call { source, .. } => mentions_full_disk(&root_message(source)),
            Self::InvalidHost { .. }
            | Self::SocketMissing { .. }
            | Self::NotRunning { .. }
            | Self::PermissionDenied { .. }
            | Self::ApiTooOld { .. }
            | Self::NotLinux { .. }
            | Self::ImageMissing { .. }
            | Self::WrongArchitecture { .. }
            | Self::NoSpace { .. }
            | Self::Timeout { .. } => false,
        }
    }

    /// Returns what is wrong and what to do about it.
    pub fn problem(&self) -> ProviderProblem {
        ProviderProblem {
            what: self.to_string(),
            fix: self.fix(),
        }
    }

    /// Returns what to do about it.
    fn fix(&self) -> String {
        match self {
            Self::InvalidHost { .. } => {
                "set `DOCKER_HOST` to what `docker context inspect` shows, or unset it".to_owned()
            }
            Self::SocketMissing { .. } => {
                "start Docker, or set `DOCKER_HOST` to the endpoint that `docker context inspect` shows".to_owned()
            }
            Self::NotRunning { .. } => "start Docker, or correct `DOCKER_HOST`".to_owned(),
            Self::PermissionDenied { group, .. } => match group {
                Some(group) => format!(
                    "join the group `{group}` with `sudo usermod -aG {group} \"$USER\"` and log in again"
                ),
                None => "ask for access to the socket, or use a rootless engine".to_owned(),
            },
            Self::ApiTooOld { .. } => "install Docker Engine 20.10 or newer".to_owned(),
            Self::NotLinux { .. } => "switch Docker to Linux containers".to_owned(),
            Self::ImageMissing { .. } => {
                "build it with `ralph image build`, or get it with `ralph image pull`".to_owned()
            }
            Self::WrongArchitecture { needs, .. } => {
                format!("build it on this engine with `ralph image build`, or name an image for `{needs}`")
            }
            Self::NoSpace { .. } => {
                "make room with `docker system prune`, which removes what no container uses".to_owned()
            }
            Self::Timeout { .. } => "look whether `docker info` answers; restart Docker if not".to_owned(),
            Self::Call { .. } => "look into the engine's own log for more".to_owned(),
        }
    }
}

/// Tells whether an engine's words mean that its disk is full.
pub(super) fn mentions_full_disk(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.contains("no space left on device") || words.contains("disk quota exceeded")
}

/// Returns the engine's own words, without the layers of the client library around them.
pub(super) fn root_message(error: &Error) -> String {
    if let Error::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    if let Error::DockerStreamError { error } = error {
        return error.trim().to_owned();
    }
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Returns the image that the engine says it does not have.
fn missing_image(error: &Error) -> Option<String> {
    let Error::DockerResponseServerError {
        status_code: 404,
        message,
    } = error
    else {
        return None;
    };
    let (_, image) = message.split_once("No such image: ")?;
    Some(image.trim().to_owned())
}

/// Returns why the engine cannot be reached, if that is what went wrong.
fn connect_error(address: &DockerAddress, error: &Error) -> Option<DockerError> {
    if let Error::SocketNotFoundError(path) = error {
        let path = PathBuf::from(path);
        let hidden =
            std::fs::metadata(&path).is_err_and(|why| why.kind() == ErrorKind::PermissionDenied);
        return Some(if hidden {
            DockerError::PermissionDenied { path, group: None }
        } else {
            DockerError::SocketMissing { path }
        });
    }
    let Error::HyperLegacyError { err } = error else {
        return None;
    };
    if !err.is_connect() {
        return None;
    }
    let kind = io_error_kind(err);
    Some(match address.socket() {
        Some(path) if kind == Some(ErrorKind::PermissionDenied) => DockerError::PermissionDenied {
            path: path.to_owned(),
            group: socket::owning_group(path),
        },
        Some(path) if kind == Some(ErrorKind::NotFound) => DockerError::SocketMissing {
            path: path.to_owned(),
        },
        Some(_) | None => DockerError::NotRunning {
            address: address.clone(),
            why: root_message(error),
        },
    })
}

/// Finds the machine's own reason in a chain of errors.
fn io_error_kind(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Some(error.kind());
        }
        next = error.source();
    }
    None
}
