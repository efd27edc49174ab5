//! The live handle of a Docker sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Exec, ExecOutcome, ExecStatus, Freezer, InputSource, OutputSink, Sandbox, SandboxEntry,
    SandboxError, SandboxId, WriteMode,
};
use ralph_guest::files;
use ralph_guest::wire::{FileWriteMode, Flow, GuestFailure, GuestReply, GuestRequest, GuestStream};
use tokio::sync::Mutex;

use super::container::{Container, ContainerError};
use super::exec;
use super::frozen_time::FrozenTime;
use super::guest_connection::GuestConnection;
use super::guest_volume;
use super::recovery::{ConnectionFailure, Recovery, recover, sandbox_gone};
use crate::docker::DockerError;
use crate::logged::logged;
use crate::sandbox::convert;

/// Maximum time of a file operation without progress.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);

/// A sandbox: a volume and its container.
pub(super) struct DockerSandbox {
    id: SandboxId,
    container: Container,
    env: BTreeMap<String, String>,
    /// `None` after the sandbox was removed, by this or another process.
    connection: Mutex<Option<Arc<GuestConnection>>>,
    frozen: FrozenTime,
}

/// The result of a file operation.
struct GuestResponse {
    reply: GuestReply,
    bytes: Vec<u8>,
}

impl DockerSandbox {
    pub(super) fn new(id: SandboxId, container: Container, connection: GuestConnection) -> Self {
        Self {
            id,
            env: environment(&container),
            container,
            connection: Mutex::new(Some(Arc::new(connection))),
            frozen: FrozenTime::default(),
        }
    }

    /// Returns the environment of every command.
    pub(super) fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Returns the time in which the sandbox was frozen.
    pub(super) fn frozen(&self) -> &FrozenTime {
        &self.frozen
    }

    /// Returns the connection, re-established if the last one ended. Waits while the sandbox is
    /// frozen.
    pub(super) async fn connection(&self) -> Result<Arc<GuestConnection>, SandboxError> {
        self.frozen.wait_until_thawed().await;
        let mut current = self.connection.lock().await;
        let connection = current.clone().ok_or_else(|| sandbox_gone(&self.id))?;
        if !connection.link().is_closed() {
            return Ok(connection);
        }
        match recover(&self.container, ConnectionFailure::Closed).await {
            Recovery::Restarted(connection, _) => {
                let connection = Arc::new(connection);
                *current = Some(connection.clone());
                Ok(connection)
            }
            Recovery::Gone => {
                *current = None;
                Err(sandbox_gone(&self.id))
            }
            Recovery::Failed(error) => Err(error),
        }
    }

    /// Determines why the connection ended, reconnects, and returns the error of the interrupted
    /// operation.
    pub(super) async fn reconnect_after(
        &self,
        broken: &Arc<GuestConnection>,
        failure: ConnectionFailure,
    ) -> SandboxError {
        let mut current = self.connection.lock().await;
        let is_current = current
            .as_ref()
            .is_some_and(|connection| Arc::ptr_eq(connection, broken));
        if current.is_none() {
            return sandbox_gone(&self.id);
        }
        if !is_current {
            let why = "the connection to the sandbox was lost".into();
            return SandboxError::Interrupted { why };
        }
        match recover(&self.container, failure).await {
            Recovery::Restarted(connection, mut why) => {
                let stderr = broken.stderr();
                if !stderr.trim().is_empty() {
                    why = format!("{why}; guest output: {}", stderr.trim());
                }
                *current = Some(Arc::new(connection));
                SandboxError::Interrupted { why }
            }
            Recovery::Gone => {
                *current = None;
                sandbox_gone(&self.id)
            }
            Recovery::Failed(error) => error,
        }
    }

    /// Sends a request to the guest; repeats it after a lost connection if `retry` allows that.
    async fn request(
        &self,
        request: &GuestRequest,
        bytes: &[u8],
        retry: RetryPolicy,
    ) -> Result<GuestResponse, SandboxError> {
        let mut tries = match retry {
            RetryPolicy::Once => 2,
            RetryPolicy::Never => 1,
        };
        loop {
            tries -= 1;
            let connection = self.connection().await?;
            let failure = match self
                .frozen
                .timeout(REQUEST_TIMEOUT, exchange(&connection, request, bytes))
                .await
            {
                Ok(Some(response)) => return Ok(response),
                Ok(None) => ConnectionFailure::Closed,
                Err(_) => ConnectionFailure::Silent,
            };
            let error = self.reconnect_after(&connection, failure).await;
            if tries == 0 || !matches!(error, SandboxError::Interrupted { .. }) {
                return Err(error);
            }
        }
    }

    /// Sends a request that is answered without data.
    async fn request_done(
        &self,
        (verb, path): (&str, &SandboxPath),
        request: &GuestRequest,
        bytes: &[u8],
        retry: RetryPolicy,
    ) -> Result<Vec<u8>, SandboxError> {
        let GuestResponse { reply, bytes } = self.request(request, bytes, retry).await?;
        match reply {
            GuestReply::Done => Ok(bytes),
            GuestReply::Failed(failure) => {
                Err(convert::file_error(verb, path.as_str(), failure.into()))
            }
            GuestReply::Welcome(_)
            | GuestReply::Ended(_)
            | GuestReply::Stat(_)
            | GuestReply::NotStarted(_)
            | GuestReply::TooLarge { .. } => Err(unexpected_reply(verb, path)),
        }
    }
}

/// Returns the environment of all commands: the egress variables and those of the sandbox.
fn environment(container: &Container) -> BTreeMap<String, String> {
    let mut variables = match &container.egress {
        Some(egress) => egress.environment(),
        None => BTreeMap::new(),
    };
    variables.extend(container.labels.env.clone());
    variables
}

/// Whether a request is repeated after a lost connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryPolicy {
    /// The request is idempotent.
    Once,
    /// Repeating the request would apply it twice.
    Never,
}

/// Sends a request with its body and receives the reply; `None` if the connection ended.
async fn exchange(
    connection: &GuestConnection,
    request: &GuestRequest,
    bytes: &[u8],
) -> Option<GuestResponse> {
    let GuestStream {
        sender,
        mut messages,
        mut data,
    } = logged("send a request to a guest", connection.link().open(request))?;
    let send = async {
        sender.send_all(Flow::Main, bytes).await;
        sender.finish();
    };
    let mut send = std::pin::pin!(send);
    let mut is_complete = false;
    let mut received = Vec::new();
    let reply = loop {
        tokio::select! {
            biased;
            Some((_, chunk)) = data.next() => received.extend(chunk),
            message = messages.next() => break message?,
            () = &mut send, if !is_complete => is_complete = true,
        }
    };
    while let Some((_, chunk)) = data.try_next() {
        received.extend(chunk);
    }
    Some(GuestResponse {
        reply: logged("read the reply of a guest", serde_json::from_slice(&reply))?,
        bytes: received,
    })
}

fn unexpected_reply(verb: &str, path: &SandboxPath) -> SandboxError {
    let source = std::io::Error::other("unexpected reply from the guest");
    convert::io_failure(verb, path.as_str(), source)
}

#[async_trait]
impl Sandbox for DockerSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn probe_program(&self) -> Option<&str> {
        Some(guest_volume::GUEST_PATH)
    }

    fn has_fixed_paths(&self) -> bool {
        true
    }

    fn freezer(&self) -> Option<&dyn Freezer> {
        Some(self)
    }

    async fn exec(
        &self,
        exec: Exec,
        input: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let outcome = exec::exec(self, exec, input, output).await?;
        if outcome.ended == ExecStatus::OutOfMemory {
            self.container.record_out_of_memory();
        }
        Ok(outcome)
    }

    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError> {
        let request = GuestRequest::Read {
            path: path.to_string(),
            limit,
        };
        let GuestResponse { reply, bytes } = self.request(&request, b"", RetryPolicy::Once).await?;
        match reply {
            GuestReply::Done => Ok(bytes),
            GuestReply::TooLarge { size } => Err(SandboxError::TooLarge {
                path: path.to_string(),
                size,
                limit,
            }),
            GuestReply::Failed(failure) => {
                Err(convert::file_error("read", path.as_str(), failure.into()))
            }
            GuestReply::Welcome(_)
            | GuestReply::Ended(_)
            | GuestReply::Stat(_)
            | GuestReply::NotStarted(_) => Err(unexpected_reply("read", path)),
        }
    }

    async fn write(
        &self,
        path: &SandboxPath,
        bytes: &[u8],
        mode: WriteMode,
    ) -> Result<(), SandboxError> {
        let (way, retry) = match mode {
            WriteMode::Replace => (FileWriteMode::Replace, RetryPolicy::Once),
            WriteMode::Append => (FileWriteMode::Append, RetryPolicy::Never),
        };
        let request = GuestRequest::Write {
            path: path.to_string(),
            way,
        };
        self.request_done(("write", path), &request, bytes, retry)
            .await?;
        Ok(())
    }

    async fn list(&self, path: &SandboxPath) -> Result<Vec<SandboxEntry>, SandboxError> {
        let request = GuestRequest::List {
            path: path.to_string(),
        };
        let lines = self
            .request_done(("list", path), &request, b"", RetryPolicy::Once)
            .await?;
        lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let entry: files::GuestDirEntry =
                    serde_json::from_slice(line).map_err(|error| {
                        convert::io_failure("list", path.as_str(), std::io::Error::other(error))
                    })?;
                Ok(convert::entry(entry))
            })
            .collect()
    }

    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError> {
        let request = GuestRequest::Delete {
            path: path.to_string(),
        };
        self.request_done(("delete", path), &request, b"", RetryPolicy::Once)
            .await?;
        Ok(())
    }

    async fn sync(&self) -> Result<(), SandboxError> {
        let GuestResponse { reply, .. } = self
            .request(&GuestRequest::Sync, b"", RetryPolicy::Once)
            .await?;
        match reply {
            // A container created by an earlier version of ralph has a guest that does not know
            // this request. Its work is still imported and synced on the host.
            GuestReply::Done | GuestReply::Failed(GuestFailure::System { number: None, .. }) => {
                Ok(())
            }
            GuestReply::Failed(failure) => Err(convert::file_error(
                "sync sandbox",
                &self.id.0,
                failure.into(),
            )),
            GuestReply::Welcome(_)
            | GuestReply::Ended(_)
            | GuestReply::Stat(_)
            | GuestReply::NotStarted(_)
            | GuestReply::TooLarge { .. } => Err(unexpected_reply("sync", &SandboxPath::repo())),
        }
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        let mut connection = self.connection.lock().await;
        *connection = None;
        let removed = self.container.remove().await;
        removed.map_err(|error| error.into_sandbox_error(&self.container))?;
        let object = super::labels::object_name(self.container.name);
        let api = self.container.engine.api();
        let removed = api.remove_volume(
            &object,
            None::<bollard::query_parameters::RemoveVolumeOptions>,
        );
        match self.container.engine.call("remove a volume", removed).await {
            Err(error) if !error.is_missing() => Err(provider_error(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl Freezer for DockerSandbox {
    async fn freeze(&self) -> Result<(), SandboxError> {
        // Before the pause: the guest may stop responding at any time from now on.
        self.frozen.begin();
        let paused = self.container.pause().await;
        if paused.is_err() {
            self.frozen.end();
        }
        paused.map_err(|error| error.into_sandbox_error(&self.container))
    }

    async fn thaw(&self) -> Result<(), SandboxError> {
        let continued = self.container.unpause().await;
        self.frozen.end();
        match continued {
            // The command that ran in it reports its end.
            Ok(()) | Err(ContainerError::Missing) => Ok(()),
            Err(error) => Err(error.into_sandbox_error(&self.container)),
        }
    }
}

fn provider_error(error: &DockerError) -> SandboxError {
    SandboxError::Provider(error.problem())
}
