//! The connection to a Docker Engine.

use std::future::Future;
use std::time::{Duration, Instant};

use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use ralph_guest::running_time;

use super::address::DockerAddress;
use super::error::DockerError;
use super::info::DockerInfo;

/// Time limit for a call that does not stream.
pub const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for the first response.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The oldest API version with all features used here: that of Engine 20.10.
pub(super) const MINIMUM_API: &str = "1.41";

/// A connection to a Docker Engine. Clones share the connection.
#[derive(Debug, Clone)]
pub struct DockerEngine {
    client: Docker,
    address: DockerAddress,
}

impl DockerEngine {
    /// Connects to the Docker Engine at `host`, in the format of `DOCKER_HOST`; `None` means the
    /// default socket. Negotiates the newest API version that both sides support.
    pub async fn connect(host: Option<&str>) -> Result<Self, DockerError> {
        Self::connect_within(host, CONNECT_TIMEOUT).await
    }

    /// Connects like [`DockerEngine::connect`], with a given time limit.
    async fn connect_within(host: Option<&str>, timeout: Duration) -> Result<Self, DockerError> {
        let address = DockerAddress::parse(host)?;
        let doing = format!("reach the Docker Engine at `{address}`");
        let limit = CALL_TIMEOUT.as_secs();
        let docker = match &address {
            DockerAddress::Socket(path) => {
                Docker::connect_with_unix(&path.to_string_lossy(), limit, API_DEFAULT_VERSION)
            }
            DockerAddress::Tcp(host_port) => {
                Docker::connect_with_http(host_port, limit, API_DEFAULT_VERSION)
            }
        }
        .map_err(|error| DockerError::from_call(&doing, &address, error))?;
        let docker = tokio::time::timeout(timeout, docker.negotiate_version())
            .await
            .map_err(|_| DockerError::Timeout {
                doing: doing.clone(),
                limit: timeout,
            })?
            .map_err(|error| DockerError::from_call(&doing, &address, error))?;
        let version = docker.client_version();
        if is_too_old(version) {
            return Err(DockerError::ApiTooOld {
                version: version.to_string(),
            });
        }
        Ok(Self {
            client: docker,
            address,
        })
    }

    /// Returns the client of the Engine API.
    pub fn api(&self) -> &Docker {
        &self.client
    }

    /// Returns the address of the Docker Engine.
    pub fn address(&self) -> &DockerAddress {
        &self.address
    }

    /// Queries the Docker Engine's system information.
    pub async fn info(&self) -> Result<DockerInfo, DockerError> {
        let info = self
            .call(
                "query the Docker Engine's system information",
                self.client.info(),
            )
            .await?;
        let docker_info = DockerInfo::from_system_info(
            info,
            self.client.client_version().to_string(),
            &self.address,
        );
        if docker_info.os_type != "linux" {
            return Err(DockerError::NotLinux {
                os: docker_info.os_type,
            });
        }
        Ok(docker_info)
    }

    /// Runs one call that does not stream, within [`CALL_TIMEOUT`]. `doing` completes "cannot …".
    pub async fn call<T>(
        &self,
        doing: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, DockerError> {
        let started = Instant::now();
        let result = running_time::timeout(CALL_TIMEOUT, call).await;
        let ms = started.elapsed().as_millis();
        match result {
            Ok(Ok(response)) => {
                tracing::debug!(call = doing, ms, "Docker Engine call");
                Ok(response)
            }
            Ok(Err(error)) => {
                tracing::debug!(call = doing, ms, "Docker Engine call failed");
                Err(self.classify_failure(doing, error).await)
            }
            Err(_) => {
                tracing::warn!(call = doing, ms, "Docker Engine call timed out");
                Err(DockerError::Timeout {
                    doing: doing.to_owned(),
                    limit: CALL_TIMEOUT,
                })
            }
        }
    }

    /// Converts a failed call to an error with a user-facing explanation. `doing` completes "cannot
    /// …".
    pub async fn classify_failure(
        &self,
        doing: &str,
        error: bollard::errors::Error,
    ) -> DockerError {
        let error = DockerError::from_call(doing, &self.address, error);
        // Callers ask for objects that may be missing or in another state; that is not a failure.
        if error.is_missing() || error.is_conflict() {
            tracing::debug!(call = doing, %error, "Docker Engine call rejected");
        } else {
            tracing::warn!(call = doing, %error, "Docker Engine call failed");
        }
        if error.is_disk_full() {
            return self.disk_full_error(doing).await;
        }
        error
    }

    /// Returns the error for a full disk, with the affected directory.
    pub(crate) async fn disk_full_error(&self, doing: &str) -> DockerError {
        let response = tokio::time::timeout(CONNECT_TIMEOUT, self.client.info()).await;
        let data_root = match response {
            Ok(Ok(info)) => info.docker_root_dir,
            Ok(Err(_)) | Err(_) => None,
        };
        DockerError::NoSpace {
            doing: doing.to_owned(),
            data_root: data_root.unwrap_or_else(|| "/var/lib/docker".to_owned()),
        }
    }
}

/// Returns whether a version is below [`MINIMUM_API`].
fn is_too_old(version: ClientVersion) -> bool {
    version
        < ClientVersion {
            major_version: 1,
            minor_version: 41,
        }
}

#[cfg(test)]
mod tests;
