//! A growing file as WebSocket frames.
//!
//! The file is the memory: the newest frames are kept encoded, because most clients are at the end of
//! the file and get the same bytes. A client that is further behind, or comes back, gets older parts of
//! the file, which are encoded again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::kept_frames::{FrameBatch, FramesAhead, KeptFrames};

/// The bytes of the file that are encoded at once. One longer record is encoded alone.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// The longest record that is read.
pub(super) const MAX_RECORD_BYTES: usize = 16 << 20;
/// The frames of a part of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct EncodedFrames {
    /// The frames, each with its header.
    pub(super) frames: Vec<u8>,
    /// The bytes of the file that they contain.
    pub(super) consumed: usize,
    /// The number of the last event; none if the frames have no numbers.
    pub(super) last: Option<u64>,
}

/// Translates bytes of a file into frames.
pub(super) trait FrameEncoder: Send + Sync + 'static {
    /// Encodes the whole units at the start of `bytes`, which are at `offset` of the file. Nothing is
    /// consumed if not even one is complete.
    fn encode(&self, bytes: &[u8], offset: u64) -> io::Result<EncodedFrames>;
}

/// A growing file as frames.
#[derive(Debug)]
pub(super) struct FrameLog<E> {
    file: File,
    encoder: E,
    kept: Mutex<KeptFrames<u64>>,
    /// One client at a time encodes older frames: the others probably need the same ones.
    older: Semaphore,
}

impl<E: FrameEncoder> FrameLog<E> {
    /// Follows a file from a boundary of its units. `last` is the number of the event before it.
    pub(super) fn new(file: File, encoder: E, end: u64, last: u64) -> Self {
        Self {
            file,
            encoder,
            kept: Mutex::new(KeptFrames::new(end, last)),
            older: Semaphore::new(1),
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the position behind the newest frames, and the number of the last event.
    pub(super) fn head(&self) -> (u64, u64) {
        self.lock().head()
    }

    /// Encodes what the file has gained, up to `limit`, and calls `published` after each part.
    pub(super) fn follow(
        &self,
        limit: u64,
        mut published: impl FnMut(&FrameBatch<u64>),
    ) -> io::Result<()> {
        loop {
            let (end, _) = self.head();
            let Some(batch) = self.encode(end, limit)? else {
                return Ok(());
            };
            self.lock().push(batch.clone());
            published(&batch);
        }
    }

    /// Forgets the kept frames. They are read again when a client needs them.
    pub(super) fn forget(&self) {
        self.lock().forget();
    }

    /// Returns the next frames after `at` that start before `limit`; none at the end.
    pub(super) async fn read(
        self: &std::sync::Arc<Self>,
        at: u64,
        limit: u64,
    ) -> io::Result<Option<FramesAhead<u64>>> {
        let kept = |log: &Self| log.lock().find(at, limit);
        if at >= limit.min(self.head().0) {
            return Ok(None);
        }
        if let Some(found) = kept(self) {
            return Ok(Some(found));
        }
        let _only = self.older.acquire().await;
        if let Some(found) = kept(self) {
            return Ok(Some(found));
        }
        let log = self.clone();
        let read = tokio::task::spawn_blocking(move || log.read_older(at));
        read.await.map_err(io::Error::other)?
    }

    fn read_older(&self, at: u64) -> io::Result<Option<FramesAhead<u64>>> {
        let limit = self.lock().limit_after(at);
        let Some(batch) = self.encode(at, limit)? else {
            return Ok(None);
        };
        let mut kept = self.lock();
        kept.keep_older(batch.clone());
        Ok(Some(batch.into()))
    }

    /// Encodes the part of the file at `start`; none if it has no complete unit before `limit`.
    fn encode(&self, start: u64, limit: u64) -> io::Result<Option<FrameBatch<u64>>> {
        let mut size = CHUNK_BYTES;
        loop {
            let wanted =
                usize::try_from(limit.saturating_sub(start)).map_or(size, |rest| rest.min(size));
            let bytes = read_at(&self.file, start, wanted)?;
            let encoded = self.encoder.encode(&bytes, start)?;
            if encoded.consumed > 0 {
                return Ok(Some(FrameBatch {
                    start,
                    end: start + encoded.consumed as u64,
                    frames: encoded.frames.into(),
                    last: encoded.last,
                }));
            }
            if bytes.len() < size {
                return Ok(None);
            }
            if size >= MAX_RECORD_BYTES {
                return Err(io::Error::other(format!(
                    "a record at byte {start} is longer than 16 MiB"
                )));
            }
            size *= 4;
        }
    }

    fn lock(&self) -> MutexGuard<'_, KeptFrames<u64>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads up to `length` bytes at an offset; fewer at the end of the file.
pub(super) fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
