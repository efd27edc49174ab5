//! A guest in this process, and the host's end of the line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ralph_guest::command::Program;
use ralph_guest::serve::{Guest, Settings, Transport, converse};
use ralph_guest::wire::{ExecRequest, Flow, Link, Reply, Request, Side, Stream};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// A guest with a directory of its own.
pub(crate) struct Conversation {
    pub(crate) link: Link,
    pub(crate) incoming: ralph_guest::wire::Incoming,
    pub(crate) root: TempDir,
    tasks: JoinSet<()>,
}

impl Conversation {
    pub(crate) fn begin() -> Self {
        let root = tempfile::tempdir().unwrap();
        let image = BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("FROM_IMAGE".to_owned(), "yes".to_owned()),
        ]);
        let settings = Settings {
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
            converse(guest, reader, writer).await.ok();
        });
        let (reader, writer) = tokio::io::split(near);
        let (link, incoming, carry) = Link::new(Side::Host, reader, writer);
        tasks.spawn(async move {
            carry.await.ok();
        });
        Self {
            link,
            incoming,
            root,
            tasks,
        }
    }

    /// Ends the connection as a host does that is killed.
    pub(crate) async fn hang_up(&mut self) {
        self.tasks.shutdown().await;
    }

    pub(crate) fn open(&self, request: &Request) -> Stream {
        self.link.open(request).expect("the line is open")
    }

    /// Asks, takes all bytes, and returns the answer with them.
    pub(crate) async fn ask(&self, request: &Request) -> (Reply, Vec<u8>, Vec<u8>) {
        let mut stream = self.open(request);
        stream.sender.end();
        answer(&mut stream).await
    }
}

/// Takes everything that comes and returns it with the answer.
pub(crate) async fn answer(stream: &mut Stream) -> (Reply, Vec<u8>, Vec<u8>) {
    let (mut main, mut side) = (Vec::new(), Vec::new());
    let reply = loop {
        tokio::select! {
            biased;
            Some((flow, bytes)) = stream.data.next() => match flow {
                Flow::Main => main.extend(bytes),
                Flow::Side => side.extend(bytes),
            },
            message = stream.messages.next() => {
                break serde_json::from_slice(&message.expect("an answer")).unwrap();
            }
        }
    };
    (reply, main, side)
}

/// Returns a shell command with time enough.
pub(crate) fn shell(line: &str) -> ExecRequest {
    ExecRequest {
        program: Program::Shell(line.into()),
        cwd: "repo".into(),
        env: BTreeMap::new(),
        input: false,
        timeout_ms: u64::try_from(Duration::from_mins(1).as_millis()).unwrap(),
        output_limit: 1 << 30,
    }
}
