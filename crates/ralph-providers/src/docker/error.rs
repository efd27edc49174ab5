//! Errors of the Docker Engine, with suggested fixes.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error;
use ralph_core::ports::ProviderProblem;

use super::address::DockerAddress;
use super::engine::MINIMUM_API;
use super::socket;

/// Why a request to the Docker Engine failed.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// The address is invalid.
    #[error("cannot use Docker Engine `{host}`: {rule}")]
    InvalidHost { host: String, rule: &'static str },
    /// The socket does not exist.
    #[error("no Docker Engine is running here: socket `{}` does not exist", path.display())]
    SocketMissing { path: PathBuf },
    /// Nothing listens at the address.
    #[error("no Docker Engine answers at `{address}`: {why}")]
    NotRunning { address: DockerAddress, why: String },
    /// The user may not access the socket.
    #[error("you may not use the Docker Engine's socket `{}`: permission denied", path.display())]
    PermissionDenied {
        path: PathBuf,
        /// The group that may use the socket, if it can be determined.
        group: Option<String>,
    },
    /// The Docker Engine is older than the minimum API version.
    #[error(
        "the Docker Engine is too old: it supports API {version}, but at least {MINIMUM_API} is needed"
    )]
    ApiTooOld { version: String },
    /// The Docker Engine does not run Linux containers.
    #[error("the Docker Engine cannot be used: it runs `{os}` containers, but `linux` is needed")]
    NotLinux { os: String },
    /// The image does not exist.
    #[error("there is no image `{image}`")]
    ImageMissing { image: String },
    /// The image is for another architecture.
    #[error(
        "image `{image}` cannot run here: it is for `{has}`, the Docker Engine's machine is `{needs}`"
    )]
    WrongArchitecture {
        image: String,
        has: String,
        needs: String,
    },
    /// The Docker Engine's disk is full.
    #[error(
        "cannot {doing}: no space left in `{data_root}`, where the Docker Engine keeps its data"
    )]
    NoSpace {
        /// Completes "cannot …".
        doing: String,
        /// The Docker Engine's data directory.
        data_root: String,
    },
    /// The call timed out.
    #[error("cannot {doing}: the Docker Engine did not answer within {} s", limit.as_secs())]
    Timeout { doing: String, limit: Duration },
    /// Any other error, with the Docker Engine's message.
    #[error("cannot {doing}: {}", root_message(source))]
    Call { doing: String, source: Box<Error> },
}

impl DockerError {
    /// Converts an error of a call to the Docker Engine at `address`.
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

    /// Returns whether the object does not exist.
    pub fn is_missing(&self) -> bool {
        self.status() == Some(404)
    }

    /// Returns whether the object is in a state that does not allow the call.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// Returns the HTTP status of the error, if there is one.
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

    /// Returns whether the message reports a full disk.
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

    /// Returns the problem and its fix.
    pub fn problem(&self) -> ProviderProblem {
        ProviderProblem {
            what: self.to_string(),
            fix: self.fix(),
        }
    }

    /// Returns the suggested fix.
    fn fix(&self) -> String {
        match self {
            Self::InvalidHost { .. } => {
                "set `DOCKER_HOST` to the endpoint that `docker context inspect` shows, or unset it".to_owned()
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
                format!("build it on this engine with `ralph image build`, or choose an image for `{needs}`")
            }
            Self::NoSpace { .. } => {
                "free disk space with `docker system prune`, which removes everything that no container uses".to_owned()
            }
            Self::Timeout { .. } => "check that `docker info` works; restart Docker if it does not".to_owned(),
            Self::Call { .. } => "check the Docker Engine's log for details".to_owned(),
        }
    }
}

/// Returns whether a message reports a full disk.
pub(super) fn mentions_full_disk(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("no space left on device") || message.contains("disk quota exceeded")
}

/// Returns the Docker Engine's message without the client library's wrapping.
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

/// Returns the name of the image that the Docker Engine reports as missing.
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

/// Returns a connection error, if the Docker Engine could not be reached.
fn connect_error(address: &DockerAddress, error: &Error) -> Option<DockerError> {
    if let Error::SocketNotFoundError(path) = error {
        let path = PathBuf::from(path);
        let is_inaccessible =
            std::fs::metadata(&path).is_err_and(|why| why.kind() == ErrorKind::PermissionDenied);
        return Some(if is_inaccessible {
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

/// Finds the I/O error kind in a chain of errors.
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
