//! The connection to an engine.

use std::future::Future;
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use ralph_guest::running_time;

use super::address::Address;
use super::error::EngineError;
use super::facts::Facts;

/// How long one call may take, unless it streams.
pub const CALL_LIMIT: Duration = Duration::from_mins(1);

/// How long an engine has to answer the first time.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The oldest API that has everything that is used here: that of Engine 20.10.
pub(super) const MINIMUM_API: &str = "1.41";

/// A connection to an engine. A clone is the same connection.
#[derive(Debug, Clone)]
pub struct Engine {
    docker: Docker,
    address: Address,
}

impl Engine {
    /// Connects to the engine at `host`, which is written like `DOCKER_HOST`; none means the default
    /// socket. The newest API that both sides know is agreed on.
    pub async fn connect(host: Option<&str>) -> Result<Self, EngineError> {
        Self::connect_within(host, CONNECT_LIMIT).await
    }

    /// Connects as [`Engine::connect`] does, to an engine that has this long to answer.
    async fn connect_within(host: Option<&str>, patience: Duration) -> Result<Self, EngineError> {
        let address = Address::parse(host)?;
        let doing = format!("reach the Docker Engine at `{address}`");
        let limit = CALL_LIMIT.as_secs();
        let docker = match &address {
            Address::Socket(path) => {
                Docker::connect_with_unix(&path.to_string_lossy(), limit, API_DEFAULT_VERSION)
            }
            Address::Tcp(machine) => Docker::connect_with_http(machine, limit, API_DEFAULT_VERSION),
        }
        .map_err(|error| EngineError::of(&doing, &address, error))?;
        let docker = tokio::time::timeout(patience, docker.negotiate_version())
            .await
            .map_err(|_| EngineError::Silent {
                doing: doing.clone(),
                limit: patience,
            })?
            .map_err(|error| EngineError::of(&doing, &address, error))?;
        let version = docker.client_version();
        if is_too_old(version) {
            return Err(EngineError::ApiTooOld {
                version: version.to_string(),
            });
        }
        Ok(Self { docker, address })
    }

    /// Returns the client of the Engine API.
    pub fn api(&self) -> &Docker {
        &self.docker
    }

    /// Returns where the engine listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Asks the engine about itself and its machine.
    pub async fn facts(&self) -> Result<Facts, EngineError> {
        let info = self
            .call("ask the Docker Engine about itself", self.docker.info())
            .await?;
        let facts = Facts::read(
            info,
            self.docker.client_version().to_string(),
            &self.address,
        );
        if facts.os_type != "linux" {
            return Err(EngineError::NotLinux { os: facts.os_type });
        }
        Ok(facts)
    }

    /// Makes one call that does not stream, within [`CALL_LIMIT`]. `doing` completes "cannot …".
    pub async fn call<T>(
        &self,
        doing: &str,
        call: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, EngineError> {
        match running_time::timeout(CALL_LIMIT, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failure(doing, error).await),
            Err(_) => Err(EngineError::Silent {
                doing: doing.to_owned(),
                limit: CALL_LIMIT,
            }),
        }
    }

    /// Says what a failed call means to a person. `doing` completes "cannot …".
    pub async fn failure(&self, doing: &str, error: bollard::errors::Error) -> EngineError {
        let error = EngineError::of(doing, &self.address, error);
        if error.tells_of_a_full_disk() {
            return self.full(doing).await;
        }
        error
    }

    /// Says that the engine's disk is full, and where.
    pub(crate) async fn full(&self, doing: &str) -> EngineError {
        let asked = tokio::time::timeout(CONNECT_LIMIT, self.docker.info()).await;
        let data_root = match asked {
            Ok(Ok(info)) => info.docker_root_dir,
            Ok(Err(_)) | Err(_) => None,
        };
        EngineError::NoSpace {
            doing: doing.to_owned(),
            data_root: data_root.unwrap_or_else(|| "/var/lib/docker".to_owned()),
        }
    }
}

/// Tells whether a version is below [`MINIMUM_API`].
fn is_too_old(version: ClientVersion) -> bool {
    version
        < ClientVersion {
            major_version: 1,
            minor_version: 41,
        }
}

#[cfg(test)]
mod tests;
