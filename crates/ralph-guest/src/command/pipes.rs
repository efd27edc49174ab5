//! The three pipes of a command. Every wait here can be dropped without losing a byte.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;

use super::outcome::CommandStream;

/// The most that is taken from a pipe at once: as much as a pipe holds.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Where a command's input comes from, piece by piece.
pub trait CommandInputSource: Send {
    /// Waits for the next piece; none at the end. Dropping the wait loses nothing.
    fn next_chunk(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// Where a command's output goes.
pub trait CommandOutputSink: Send {
    /// Tells whether a chunk can be taken now.
    fn has_room(&self) -> bool;
    /// Waits until a chunk can be taken.
    fn wait_for_room(&mut self) -> impl Future<Output = ()> + Send;
    /// Takes the next bytes of a stream; a chunk may end anywhere, also inside a character.
    fn write_chunk(&mut self, stream: CommandStream, bytes: &[u8]);
}

/// What a command reads.
#[derive(Debug)]
pub(super) struct InputPipe<S> {
    pipe: Option<ChildStdin>,
    source: S,
    bytes: Vec<u8>,
    written: usize,
}

impl<S: CommandInputSource> InputPipe<S> {
    pub(super) fn new(pipe: Option<ChildStdin>, source: S) -> Self {
        Self {
            pipe,
            source,
            bytes: Vec::new(),
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
        if self.written == self.bytes.len() {
            let Some(bytes) = self.source.next_chunk().await else {
                self.pipe = None;
                return;
            };
            (self.bytes, self.written) = (bytes, 0);
            return;
        }
        match pipe.write(&self.bytes[self.written..]).await {
            Ok(written) => self.written += written,
            // Nobody reads any more, which is the command's own choice.
            Err(_) => self.pipe = None,
        }
    }
}

/// How much is taken from a pipe at first: most commands print less.
const INITIAL_BUFFER_BYTES: usize = 4 * 1024;

/// What a command prints on one stream.
#[derive(Debug)]
pub(super) struct OutputPipe<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    /// How much the last read brought.
    last_read: usize,
}

impl<R: AsyncRead + Unpin> OutputPipe<R> {
    pub(super) fn new(pipe: Option<R>) -> Self {
        Self {
            pipe,
            buffer: vec![0; INITIAL_BUFFER_BYTES],
            last_read: 0,
        }
    }

    /// Tells whether more can come.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next bytes; none at the end.
    pub(super) async fn next_chunk(&mut self) -> &[u8] {
        if self.last_read == self.buffer.len() {
            self.buffer.resize(CHUNK_BYTES, 0);
        }
        let count = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        };
        if count == 0 {
            self.pipe = None;
        }
        self.last_read = count;
        &self.buffer[..count]
    }
}

/// Counts output and hands on what is within the limit.
pub(super) struct OutputMeter<'a, K> {
    pub(super) sink: &'a mut K,
    limit: u64,
    pub(super) stdout: u64,
    pub(super) stderr: u64,
}

impl<'a, K: CommandOutputSink> OutputMeter<'a, K> {
    pub(super) fn new(sink: &'a mut K, limit: u64) -> Self {
        Self {
            sink,
            limit,
            stdout: 0,
            stderr: 0,
        }
    }

    pub(super) fn record(&mut self, stream: CommandStream, bytes: &[u8]) {
        let allowed = self.limit.saturating_sub(self.stdout + self.stderr);
        let kept = usize::try_from(allowed).map_or(bytes.len(), |n| n.min(bytes.len()));
        if kept > 0 {
            self.sink.write_chunk(stream, &bytes[..kept]);
        }
        let count = match stream {
            CommandStream::Stdout => &mut self.stdout,
            CommandStream::Stderr => &mut self.stderr,
        };
        *count += bytes.len() as u64;
    }

    /// Tells whether more than the limit came.
    pub(super) fn is_exceeded(&self) -> bool {
        self.stdout + self.stderr > self.limit
    }
}
