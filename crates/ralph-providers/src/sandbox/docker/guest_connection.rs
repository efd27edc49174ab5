//! The connection to the guest in a container.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::container::{AttachContainerResults, LogOutput};
use futures_util::StreamExt as _;
use ralph_guest::wire::{
    ConnectRequest, FileWriteMode, Flow, GuestReply, GuestRequest, GuestStream, HostHello,
    IncomingStreams, Link, LinkSide, OpenedStream, PROTOCOL_VERSION,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, simplex};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::logged::logged;
use crate::sandbox::egress::{EGRESS_FILES_DIRECTORY, EgressConnection, SandboxEgress};

/// Heartbeat interval, so that the guest detects a lost connection.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Buffer size for the container's output.
const ATTACHED_BUFFER: usize = 256 * 1024;
/// Maximum stored size of the guest's error output; older bytes are dropped.
const MAX_STDERR_BYTES: usize = 4096;

/// A connection to a guest. Dropping it ends everything that runs in the sandbox.
#[derive(Debug)]
pub(super) struct GuestConnection {
    link: Link,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Transfer frames, send heartbeats and serve egress; aborted on drop.
    tasks: JoinSet<()>,
    /// Streams opened by the guest, until the egress handler serves them.
    incoming: Option<IncomingStreams>,
}

impl GuestConnection {
    /// Connects over a socket that the guest has opened.
    pub(super) async fn from_socket(socket: UnixStream) -> io::Result<Self> {
        let (reader, writer) = socket.into_split();
        Self::handshake(reader, writer, Vec::new()).await
    }

    /// Connects over the container's standard input and output.
    pub(super) async fn from_attached(attached: AttachContainerResults) -> io::Result<Self> {
        let AttachContainerResults { mut output, input } = attached;
        let (reader, mut pipe) = simplex(ATTACHED_BUFFER);
        let stderr: Arc<Mutex<Vec<u8>>> = Arc::default();
        let captured = stderr.clone();
        let copy = async move {
            while let Some(Ok(chunk)) = output.next().await {
                match chunk {
                    LogOutput::StdOut { message } | LogOutput::Console { message } => {
                        if pipe.write_all(&message).await.is_err() {
                            return;
                        }
                    }
                    LogOutput::StdErr { message } => append_stderr(&captured, &message),
                    LogOutput::StdIn { .. } => {}
                }
            }
            if let Err(error) = pipe.shutdown().await {
                tracing::debug!(%error, "the output of a container ended after its reader");
            }
        };
        let mut connection = Self::handshake(reader, input, vec![Box::pin(copy)]).await?;
        connection.stderr = stderr;
        Ok(connection)
    }

    /// Performs the handshake, which checks the protocol version.
    async fn handshake<R, W>(
        reader: R,
        writer: W,
        extra_tasks: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
    ) -> io::Result<Self>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (link, incoming, transfer) = Link::new(LinkSide::Host, reader, writer);
        let mut tasks = JoinSet::new();
        for task in extra_tasks {
            tasks.spawn(task);
        }
        tasks.spawn(async move {
            // Pending requests see the end of the connection; the reason is only known here.
            match transfer.await {
                Ok(()) => tracing::debug!("guest connection ended"),
                Err(error) => tracing::warn!(%error, "guest connection lost"),
            }
        });
        tasks.spawn(send_heartbeats(link.clone()));
        let connection = Self {
            link,
            stderr: Arc::default(),
            tasks,
            incoming: Some(incoming),
        };
        let hello = GuestRequest::Hello(HostHello {
            protocol: PROTOCOL_VERSION,
        });
        match connection.request(&hello).await {
            Some(GuestReply::Welcome(welcome)) if welcome.protocol == PROTOCOL_VERSION => {
                tracing::debug!(protocol = PROTOCOL_VERSION, "guest connected");
                Ok(connection)
            }
            Some(reply) => {
                tracing::warn!(
                    expected = PROTOCOL_VERSION,
                    ?reply,
                    "unexpected handshake of a guest"
                );
                Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the guest uses another protocol version",
                ))
            }
            None => {
                tracing::warn!("guest connection ended during the handshake");
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
    }

    /// Sets up the egress listeners and their files, within a time limit.
    pub(super) async fn set_up_egress(
        &mut self,
        egress: Arc<dyn SandboxEgress>,
        limit: Duration,
    ) -> io::Result<()> {
        let files = egress.files();
        let set_up = async {
            self.listen(egress).await?;
            self.write_egress_files(&files).await
        };
        let set_up = timeout(limit, set_up).await;
        set_up.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn listen(&mut self, egress: Arc<dyn SandboxEgress>) -> io::Result<()> {
        let mut streams = Vec::new();
        for listener in egress.listeners() {
            let request = GuestRequest::Listen {
                name: listener.name,
                address: listener.address.clone(),
                listening: listener.listening,
            };
            let closed = || io::Error::from(io::ErrorKind::ConnectionReset);
            let mut stream = self.link.open(&request).map_err(|_| closed())?;
            let reply = stream.messages.next().await.ok_or_else(closed)?;
            if let Ok(GuestReply::Failed(failure)) = serde_json::from_slice(&reply) {
                let address = listener.address;
                return Err(io::Error::other(format!(
                    "the guest cannot listen on `{address}`: {failure:?}"
                )));
            }
            streams.push(stream);
        }
        if let Some(incoming) = self.incoming.take() {
            self.tasks.spawn(serve_egress(incoming, egress, streams));
        }
        Ok(())
    }

    /// Writes the egress files into the sandbox. Anything that a command has left in their place is
    /// removed, so that it cannot prevent a restart of the sandbox.
    async fn write_egress_files(&self, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let directory = Path::new(EGRESS_FILES_DIRECTORY)
            .file_name()
            .unwrap_or_default();
        let path = directory.to_string_lossy().into_owned();
        let remove = GuestRequest::Delete { path: path.clone() };
        let create = GuestRequest::MakeDirectory { path: path.clone() };
        for (doing, request) in [("remove", remove), ("create", create)] {
            match self.request(&request).await {
                Some(GuestReply::Done) => {}
                other => {
                    let text =
                        format!("the guest cannot {doing} `{EGRESS_FILES_DIRECTORY}`: {other:?}");
                    return Err(io::Error::other(text));
                }
            }
        }
        for (name, bytes) in files {
            self.write_file(&format!("{path}/{name}"), bytes).await?;
        }
        Ok(())
    }

    /// Writes a file into the workspace.
    async fn write_file(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let failed = |reply: Option<GuestReply>| {
            io::Error::other(format!("the guest cannot write `{path}`: {reply:?}"))
        };
        let path = path.to_owned();
        let way = FileWriteMode::Replace;
        let request = GuestRequest::Write { path, way };
        let mut stream = self.link.open(&request).map_err(|_| failed(None))?;
        let send = async {
            stream.sender.send_all(Flow::Main, bytes).await;
            stream.sender.finish();
            std::future::pending::<()>().await;
        };
        let reply = tokio::select! {
            reply = stream.messages.next() => reply,
            () = send => None,
        };
        let reply = reply
            .and_then(|reply| logged("read the reply of a guest", serde_json::from_slice(&reply)));
        match reply {
            Some(GuestReply::Done) => Ok(()),
            other => Err(failed(other)),
        }
    }

    /// Returns the multiplexed link.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a request without a body; `None` if the connection ended before the reply.
    pub(super) async fn request(&self, request: &GuestRequest) -> Option<GuestReply> {
        let mut stream = logged("send a request to a guest", self.link.open(request))?;
        let reply = stream.messages.next().await?;
        logged("read the reply of a guest", serde_json::from_slice(&reply))
    }

    /// Returns the end of the guest's error output; empty if the guest is connected over a socket.
    pub(super) fn stderr(&self) -> String {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&stderr).into_owned()
    }
}

/// Serves connections until the link ends. Retains the listeners' streams, because closing them
/// stops the guest from listening.
async fn serve_egress(
    mut incoming: IncomingStreams,
    egress: Arc<dyn SandboxEgress>,
    _listeners: Vec<GuestStream>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            opened = incoming.recv() => {
                let Some(OpenedStream { message, stream }) = opened else { return };
                let Ok(connect) = serde_json::from_slice::<ConnectRequest>(&message) else { continue };
                let egress = egress.clone();
                connections.spawn(async move {
                    let connection = EgressConnection {
                        listener: connect.listener,
                        local: connect.local,
                        stream: stream.into(),
                    };
                    egress.serve(connection).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn append_stderr(stderr: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut stored = stderr.lock().unwrap_or_else(PoisonError::into_inner);
    stored.extend(bytes);
    let over = stored.len().saturating_sub(MAX_STDERR_BYTES);
    stored.drain(..over);
}

async fn send_heartbeats(link: Link) {
    loop {
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        let Ok(mut stream) = link.open(&GuestRequest::Ping) else {
            return;
        };
        if stream.messages.next().await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use ralph_guest::wire::{GuestWelcome, ListenKind};

    use super::*;
    use crate::sandbox::egress::EgressListener;

    struct NoEgress;

    #[async_trait]
    impl SandboxEgress for NoEgress {
        fn listeners(&self) -> Vec<EgressListener> {
            vec![EgressListener {
                name: "proxy".to_owned(),
                address: "127.0.0.1:3128".to_owned(),
                listening: ListenKind::Connections,
            }]
        }

        fn environment(&self) -> BTreeMap<String, String> {
            BTreeMap::new()
        }

        async fn serve(&self, _: EgressConnection) {}
    }

    /// Answers the handshake and ignores everything else.
    async fn run_silent_guest(socket: UnixStream) {
        let (reader, writer) = socket.into_split();
        let (_link, mut incoming, transfer) = Link::new(LinkSide::Guest, reader, writer);
        let replying = async {
            let mut streams = Vec::new();
            while let Some(opened) = incoming.recv().await {
                let OpenedStream { message, stream } = opened;
                if let Ok(GuestRequest::Hello(_)) = serde_json::from_slice(&message) {
                    let welcome = GuestWelcome {
                        protocol: PROTOCOL_VERSION,
                        user: 10001,
                    };
                    stream.sender.send_message(&GuestReply::Welcome(welcome));
                }
                streams.push(stream);
            }
        };
        // The test ends the connection while the guest still waits.
        ralph_guest::best_effort(tokio::join!(replying, transfer).1);
    }

    #[tokio::test]
    async fn a_guest_that_never_listens_times_out() {
        let (here, there) = UnixStream::pair().unwrap();
        let test = async {
            let mut connection = GuestConnection::from_socket(here).await.unwrap();
            let limit = Duration::from_millis(50);
            connection
                .set_up_egress(Arc::new(NoEgress), limit)
                .await
                .unwrap_err()
        };
        let error = tokio::select! {
            error = timeout(Duration::from_secs(10), test) => error.unwrap(),
            () = run_silent_guest(there) => panic!("the guest has ended"),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
