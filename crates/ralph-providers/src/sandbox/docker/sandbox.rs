//! The live handle of a Docker sandbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ralph_core::path::SandboxPath;
use ralph_core::ports::{
    Ended, Entry, Exec, ExecOutcome, InputSource, OutputSink, Sandbox, SandboxError, SandboxId,
    WriteMode,
};
use ralph_guest::files;
use ralph_guest::running_time;
use ralph_guest::wire::{Failure, Flow, Reply, Request, Stream, WriteWay};
use tokio::sync::Mutex;

use super::container::Container;
use super::exec;
use super::line::Line;
use super::program;
use super::trouble::{Aftermath, Symptom, gone, look_after};
use crate::docker::EngineError;
use crate::sandbox::convert;

/// How long a file operation may be without any progress.
const STUCK: Duration = Duration::from_mins(2);

/// One sandbox: a volume, and a container that works on it.
pub(super) struct DockerSandbox {
    id: SandboxId,
    container: Container,
    env: BTreeMap<String, String>,
    /// None when the sandbox was removed, by this process or by somebody else.
    line: Mutex<Option<Arc<Line>>>,
}

/// What an operation on files brings back.
struct Answer {
    reply: Reply,
    bytes: Vec<u8>,
}

impl DockerSandbox {
    pub(super) fn new(id: SandboxId, container: Container, line: Line) -> Self {
        Self {
            id,
            env: environment(&container),
            container,
            line: Mutex::new(Some(Arc::new(line))),
        }
    }

    async fn run(
        &self,
        exec: Exec,
        later: Option<&mut dyn InputSource>,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let outcome = exec::exec(self, exec, later, output).await?;
        if outcome.ended == Ended::OutOfMemory {
            self.container.has_starved();
        }
        Ok(outcome)
    }

    /// Returns the environment of every command.
    pub(super) fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Returns the conversation, begun anew if the last one ended.
    pub(super) async fn line(&self) -> Result<Arc<Line>, SandboxError> {
        let mut held = self.line.lock().await;
        let line = held.clone().ok_or_else(|| gone(&self.id))?;
        if !line.link().is_over() {
            return Ok(line);
        }
        match look_after(&self.container, Symptom::HungUp).await {
            Aftermath::Revived(line, _) => {
                let line = Arc::new(line);
                *held = Some(line.clone());
                Ok(line)
            }
            Aftermath::Gone => {
                *held = None;
                Err(gone(&self.id))
            }
            Aftermath::Lost(error) => Err(error),
        }
    }

    /// Says why a conversation ended in the middle, and begins a new one.
    pub(super) async fn interrupted(&self, broken: &Arc<Line>, symptom: Symptom) -> SandboxError {
        let mut held = self.line.lock().await;
        let is_current = held.as_ref().is_some_and(|line| Arc::ptr_eq(line, broken));
        if held.is_none() {
            return gone(&self.id);
        }
        if !is_current {
            let why = "the connection to the sandbox was lost".into();
            return SandboxError::Interrupted { why };
        }
        match look_after(&self.container, symptom).await {
            Aftermath::Revived(line, mut why) => {
                let complaints = broken.complaints();
                if !complaints.trim().is_empty() {
                    why = format!("{why}; the guest said: {}", complaints.trim());
                }
                *held = Some(Arc::new(line));
                SandboxError::Interrupted { why }
            }
            Aftermath::Gone => {
                *held = None;
                gone(&self.id)
            }
            Aftermath::Lost(error) => error,
        }
    }

    /// Asks the guest; what can be repeated is asked again if the conversation ends in the middle.
    async fn ask(
        &self,
        request: &Request,
        bytes: &[u8],
        again: Again,
    ) -> Result<Answer, SandboxError> {
        let mut tries = match again {
            Again::Once => 2,
            Again::Never => 1,
        };
        loop {
            tries -= 1;
            let line = self.line().await?;
            let symptom = match running_time::timeout(STUCK, converse(&line, request, bytes)).await
            {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => Symptom::HungUp,
                Err(_) => Symptom::Silent,
            };
            let error = self.interrupted(&line, symptom).await;
            if tries == 0 || !matches!(error, SandboxError::Interrupted { .. }) {
                return Err(error);
            }
        }
    }

    /// Asks for something that is answered with nothing but that it is done.
    async fn have_done(
        &self,
        (verb, path): (&str, &SandboxPath),
        request: &Request,
        bytes: &[u8],
        again: Again,
    ) -> Result<Vec<u8>, SandboxError> {
        let Answer { reply, bytes } = self.ask(request, bytes, again).await?;
        match reply {
            Reply::Done => Ok(bytes),
            Reply::Failed(failure) => Err(convert::refused(verb, path.as_str(), failure.into())),
            Reply::Welcome(_)
            | Reply::Ended(_)
            | Reply::Stat(_)
            | Reply::NotStarted(_)
            | Reply::TooLarge { .. } => Err(unexpected(verb, path)),
        }
    }
}

/// Returns the environment of every command: what the way out needs, and what the sandbox was made with.
fn environment(container: &Container) -> BTreeMap<String, String> {
    let mut variables = match &container.way_out {
        Some(way_out) => way_out.environment(),
        None => BTreeMap::new(),
    };
    variables.extend(container.marks.env.clone());
    variables
}

/// Whether something is asked again after the sandbox stopped in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It comes to the same.
    Once,
    /// It would be done twice.
    Never,
}

/// Sends a request with its bytes and takes what comes back; none if the line ended.
async fn converse(line: &Line, request: &Request, bytes: &[u8]) -> Option<Answer> {
    let Stream {
        sender,
        mut messages,
        mut data,
    } = line.link().open(request).ok()?;
    let send = async {
        sender.all(Flow::Main, bytes).await;
        sender.end();
    };
    let mut send = std::pin::pin!(send);
    let mut is_complete = false;
    let mut taken = Vec::new();
    let reply = loop {
        tokio::select! {
            biased;
            Some((_, piece)) = data.next() => taken.extend(piece),
            message = messages.next() => break message?,
            () = &mut send, if !is_complete => is_complete = true,
        }
    };
    while let Some((_, piece)) = data.ready() {
        taken.extend(piece);
    }
    Some(Answer {
        reply: serde_json::from_slice(&reply).ok()?,
        bytes: taken,
    })
}

fn unexpected(verb: &str, path: &SandboxPath) -> SandboxError {
    let source = std::io::Error::other("the guest answered something else");
    convert::failed(verb, path.as_str(), source)
}

#[async_trait]
impl Sandbox for DockerSandbox {
    fn id(&self) -> &SandboxId {
        &self.id
    }

    fn prober(&self) -> Option<&str> {
        Some(program::PATH)
    }

    async fn exec(
        &self,
        exec: Exec,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        self.run(exec, None, output).await
    }

    async fn converse(
        &self,
        exec: Exec,
        input: &mut dyn InputSource,
        output: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        self.run(exec, Some(input), output).await
    }

    async fn read(&self, path: &SandboxPath, limit: u64) -> Result<Vec<u8>, SandboxError> {
        let request = Request::Read {
            path: path.to_string(),
            limit,
        };
        let Answer { reply, bytes } = self.ask(&request, b"", Again::Once).await?;
        match reply {
            Reply::Done => Ok(bytes),
            Reply::TooLarge { size } => Err(SandboxError::TooLarge {
                path: path.to_string(),
                size,
                limit,
            }),
            Reply::Failed(failure) => Err(convert::refused("read", path.as_str(), failure.into())),
            Reply::Welcome(_) | Reply::Ended(_) | Reply::Stat(_) | Reply::NotStarted(_) => {
                Err(unexpected("read", path))
            }
        }
    }

    async fn write(
        &self,
        path: &SandboxPath,
        bytes: &[u8],
        mode: WriteMode,
    ) -> Result<(), SandboxError> {
        let (way, again) = match mode {
            WriteMode::Replace => (WriteWay::Replace, Again::Once),
            WriteMode::Append => (WriteWay::Append, Again::Never),
        };
        let request = Request::Write {
            path: path.to_string(),
            way,
        };
        self.have_done(("write", path), &request, bytes, again)
            .await?;
        Ok(())
    }

    async fn list(&self, path: &SandboxPath) -> Result<Vec<Entry>, SandboxError> {
        let request = Request::List {
            path: path.to_string(),
        };
        let lines = self
            .have_done(("list", path), &request, b"", Again::Once)
            .await?;
        lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let entry: files::Entry = serde_json::from_slice(line).map_err(|error| {
                    convert::failed("list", path.as_str(), std::io::Error::other(error))
                })?;
                Ok(convert::entry(entry))
            })
            .collect()
    }

    async fn delete(&self, path: &SandboxPath) -> Result<(), SandboxError> {
        let request = Request::Delete {
            path: path.to_string(),
        };
        self.have_done(("delete", path), &request, b"", Again::Once)
            .await?;
        Ok(())
    }

    async fn sync(&self) -> Result<(), SandboxError> {
        let Answer { reply, .. } = self.ask(&Request::Sync, b"", Again::Once).await?;
        match reply {
            // A container that an earlier version of ralph created has a guest that does not know the
            // request. Its work is imported and synced on the host all the same.
            Reply::Done | Reply::Failed(Failure::System { number: None, .. }) => Ok(()),
            Reply::Failed(failure) => {
                Err(convert::refused("sync sandbox", &self.id.0, failure.into()))
            }
            Reply::Welcome(_)
            | Reply::Ended(_)
            | Reply::Stat(_)
            | Reply::NotStarted(_)
            | Reply::TooLarge { .. } => Err(unexpected("sync", &SandboxPath::repo())),
        }
    }

    async fn remove(&self) -> Result<(), SandboxError> {
        let mut line = self.line.lock().await;
        *line = None;
        let removed = self.container.remove().await;
        removed.map_err(|error| error.into_sandbox_error(&self.container))?;
        let object = super::marks::object(self.container.name);
        let api = self.container.engine.api();
        let removed = api.remove_volume(
            &object,
            None::<bollard::query_parameters::RemoveVolumeOptions>,
        );
        match self.container.engine.call("remove a volume", removed).await {
            Err(error) if !error.is_missing() => Err(provider(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn provider(error: &EngineError) -> SandboxError {
    SandboxError::Provider(error.problem())
}
