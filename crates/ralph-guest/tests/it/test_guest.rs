//! A guest in this process, and the host's end of its connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ralph_guest::best_effort;
use ralph_guest::command::CommandLine;
use ralph_guest::serve::{Guest, GuestSettings, Transport, serve_connection};
use ralph_guest::wire::{ExecRequest, Flow, GuestReply, GuestRequest, GuestStream, Link, LinkSide};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// A guest with its own directory.
pub(crate) struct TestGuest {
    pub(crate) link: Link,
    pub(crate) incoming: ralph_guest::wire::IncomingStreams,
    pub(crate) root: TempDir,
    tasks: JoinSet<()>,
}

impl TestGuest {
    pub(crate) fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let image = BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("FROM_IMAGE".to_owned(), "yes".to_owned()),
        ]);
        let settings = GuestSettings {
            root: root.path().to_owned(),
            transport: Transport::Stdio,
            foreign_user: None,
            disk_limit: None,
            writable_root: false,
            own_container: false,
        };
        let guest = Arc::new(Guest::open(&settings, None, image).unwrap());
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // A test ends the connection whenever it is done.
            best_effort(serve_connection(guest, reader, writer).await);
        });
        let (reader, writer) = tokio::io::split(near);
        let (link, incoming, transfer) = Link::new(LinkSide::Host, reader, writer);
        tasks.spawn(async move {
            best_effort(transfer.await);
        });
        Self {
            link,
            incoming,
            root,
            tasks,
        }
    }

    /// Ends the connection like a killed host.
    pub(crate) async fn disconnect(&mut self) {
        self.tasks.shutdown().await;
    }

    pub(crate) fn open(&self, request: &GuestRequest) -> GuestStream {
        self.link.open(request).expect("the connection is open")
    }

    /// Sends a request and returns the reply with all bytes.
    pub(crate) async fn request(&self, request: &GuestRequest) -> (GuestReply, Vec<u8>, Vec<u8>) {
        let mut stream = self.open(request);
        stream.sender.finish();
        collect_reply(&mut stream).await
    }
}

/// Receives all bytes of a stream and returns them with the reply.
pub(crate) async fn collect_reply(stream: &mut GuestStream) -> (GuestReply, Vec<u8>, Vec<u8>) {
    let (mut main, mut side) = (Vec::new(), Vec::new());
    let reply = loop {
        tokio::select! {
            biased;
            Some((flow, bytes)) = stream.data.next() => match flow {
                Flow::Main => main.extend(bytes),
                Flow::Side => side.extend(bytes),
            },
            message = stream.messages.next() => {
                break serde_json::from_slice(&message.expect("a reply")).unwrap();
            }
        }
    };
    (reply, main, side)
}

/// Returns a shell command with an ample timeout.
pub(crate) fn shell_request(line: &str) -> ExecRequest {
    ExecRequest {
        program: CommandLine::Shell(line.into()),
        cwd: "repo".into(),
        env: BTreeMap::new(),
        input: false,
        timeout_ms: u64::try_from(Duration::from_mins(1).as_millis()).unwrap(),
        output_limit: 1 << 30,
    }
}
