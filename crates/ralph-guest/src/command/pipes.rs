//! The three pipes of a command. All futures here are cancel-safe.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;

use super::outcome::CommandStream;

/// The maximum size of a read: the capacity of a pipe.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The source of a command's input.
pub trait CommandInputSource: Send {
    /// Returns the next chunk, or `None` at the end. Cancel-safe.
    fn next_chunk(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// The destination of a command's output.
pub trait CommandOutputSink: Send {
    /// Returns whether a chunk can be accepted now.
    fn has_room(&self) -> bool;
    /// Waits until a chunk can be accepted.
    fn wait_for_room(&mut self) -> impl Future<Output = ()> + Send;
    /// Accepts the next bytes of a stream; a chunk may end anywhere, even inside a character.
    fn write_chunk(&mut self, stream: CommandStream, bytes: &[u8]);
}

/// The input of a command.
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

    /// Returns whether there is more to write.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes as much as the pipe accepts and closes it after the last byte.
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
            // The command has closed its input, which is not an error.
            Err(_) => self.pipe = None,
        }
    }
}

/// The initial read buffer; most commands print less.
const INITIAL_BUFFER_BYTES: usize = 4 * 1024;

/// One output stream of a command.
#[derive(Debug)]
pub(super) struct OutputPipe<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    /// The size of the last read.
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

    /// Returns whether more output can follow.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Returns the next bytes; empty at the end.
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

/// Counts output and forwards it up to the limit.
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

    /// Returns whether the output exceeded the limit.
    pub(super) fn is_exceeded(&self) -> bool {
        self.stdout + self.stderr > self.limit
    }
}
