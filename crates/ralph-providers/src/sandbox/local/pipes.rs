//! The three pipes of a command. Every wait here can be dropped without losing a byte.

use ralph_core::ports::{OutputSink, Stream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;

/// The most that is taken from a pipe at once: as much as a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// What a command reads.
#[derive(Debug)]
pub(super) struct Input {
    pipe: Option<ChildStdin>,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    pub(super) fn new(pipe: Option<ChildStdin>, bytes: Vec<u8>) -> Self {
        Self {
            pipe,
            bytes,
            written: 0,
        }
    }

    /// Tells whether there is something left to write.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes what the pipe takes, and closes it after the last byte.
    pub(super) async fn feed(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let written = pipe.write(&self.bytes[self.written..]).await;
        // An error says that nobody reads any more, which is the command's own choice.
        self.written += written.unwrap_or(self.bytes.len());
        if self.written >= self.bytes.len() {
            self.pipe = None;
            self.bytes = Vec::new();
        }
    }
}

/// What a command prints on one stream.
#[derive(Debug)]
pub(super) struct Output<R> {
    pipe: Option<R>,
    buffer: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> Output<R> {
    pub(super) fn new(pipe: Option<R>) -> Self {
        Self {
            pipe,
            buffer: vec![0; CHUNK_BYTES].into(),
        }
    }

    /// Tells whether more can come.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next bytes; none at the end.
    pub(super) async fn next(&mut self) -> &[u8] {
        let count = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        };
        if count == 0 {
            self.pipe = None;
        }
        &self.buffer[..count]
    }
}

/// Counts output and hands on what is within the limit.
pub(super) struct Meter<'a> {
    sink: &'a mut dyn OutputSink,
    limit: u64,
    pub(super) stdout: u64,
    pub(super) stderr: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(sink: &'a mut dyn OutputSink, limit: u64) -> Self {
        Self {
            sink,
            limit,
            stdout: 0,
            stderr: 0,
        }
    }

    pub(super) fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let allowed = self.limit.saturating_sub(self.stdout + self.stderr);
        let kept = usize::try_from(allowed).map_or(bytes.len(), |n| n.min(bytes.len()));
        if kept > 0 {
            self.sink.chunk(stream, &bytes[..kept]);
        }
        let count = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        *count += bytes.len() as u64;
    }

    /// Tells whether more than the limit came.
    pub(super) fn is_over(&self) -> bool {
        self.stdout + self.stderr > self.limit
    }
}
