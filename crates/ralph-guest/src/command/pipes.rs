//! The three pipes of a command. Every wait here can be dropped without losing a byte.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;

use super::ended::Stream;

/// The most that is taken from a pipe at once: as much as a pipe holds.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Where a command's input comes from, piece by piece.
pub trait Source: Send {
    /// Waits for the next piece; none at the end. Dropping the wait loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// Where a command's output goes.
pub trait Sink: Send {
    /// Tells whether a chunk can be taken now.
    fn has_room(&self) -> bool;
    /// Waits until a chunk can be taken.
    fn room(&mut self) -> impl Future<Output = ()> + Send;
    /// Takes the next bytes of a stream; a chunk may end anywhere, also inside a character.
    fn chunk(&mut self, stream: Stream, bytes: &[u8]);
}

/// What a command reads.
#[derive(Debug)]
pub(super) struct Input<S> {
    pipe: Option<ChildStdin>,
    source: S,
    bytes: Vec<u8>,
    written: usize,
}

impl<S: Source> Input<S> {
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
            let Some(bytes) = self.source.next().await else {
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
const FIRST_BYTES: usize = 4 * 1024;

/// What a command prints on one stream.
#[derive(Debug)]
pub(super) struct Output<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    /// How much the last read brought.
    last: usize,
}

impl<R: AsyncRead + Unpin> Output<R> {
    pub(super) fn new(pipe: Option<R>) -> Self {
        Self {
            pipe,
            buffer: vec![0; FIRST_BYTES],
            last: 0,
        }
    }

    /// Tells whether more can come.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next bytes; none at the end.
    pub(super) async fn next(&mut self) -> &[u8] {
        if self.last == self.buffer.len() {
            self.buffer.resize(CHUNK_BYTES, 0);
        }
        let count = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        };
        if count == 0 {
            self.pipe = None;
        }
        self.last = count;
        &self.buffer[..count]
    }
}

/// Counts output and hands on what is within the limit.
pub(super) struct Meter<'a, K> {
    pub(super) sink: &'a mut K,
    limit: u64,
    pub(super) stdout: u64,
    pub(super) stderr: u64,
}

impl<'a, K: Sink> Meter<'a, K> {
    pub(super) fn new(sink: &'a mut K, limit: u64) -> Self {
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
