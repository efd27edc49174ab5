//! The position of one client in the stream of all runs.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::sleep;

use super::cursor::{FeedStart, StreamCursor};
use super::tail::{FeedFrames, FeedTail};
use crate::index::IndexError;
use crate::live::limits::StreamLag;
use crate::live::source::{FrameSource, NextFrames};
use crate::live::wire;

/// How long a reader waits for an index that cannot be read.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The first frame of the stream, and the first one after its positions lost their meaning.
#[derive(Debug, Serialize)]
struct FeedHello {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The position at which the stream starts.
    cursor: String,
    /// The position behind the newest event.
    head: String,
    /// Whether the events behind the client's cursor are unknown, so that it has to load everything.
    reset: bool,
}

/// The position of one client in the stream of all runs.
#[derive(Debug)]
pub(in crate::live) struct FeedReader {
    tail: Arc<FeedTail>,
    changes: watch::Receiver<u64>,
    position: ReaderPosition,
    /// Whether the index could not be read the last time.
    has_failed: bool,
}

#[derive(Debug)]
enum ReaderPosition {
    /// Before the first frame.
    Opening(FeedStart),
    /// Behind an event, with the number of the events before it since the start of the tail.
    Behind(StreamCursor, u64),
}

impl FeedReader {
    pub(in crate::live) fn new(tail: Arc<FeedTail>, start: FeedStart) -> Self {
        Self {
            changes: tail.changes(),
            tail,
            position: ReaderPosition::Opening(start),
            has_failed: false,
        }
    }

    async fn read(&mut self) -> Result<NextFrames, IndexError> {
        self.changes.mark_unchanged();
        loop {
            let (cursor, events) = match &mut self.position {
                ReaderPosition::Opening(start) => {
                    let start = start.clone();
                    return self.open(&start).await;
                }
                ReaderPosition::Behind(cursor, events) => (cursor, events),
            };
            match self.tail.read(cursor).await? {
                FeedFrames::Ahead(ahead) => {
                    cursor.point = ahead.end;
                    *events = ahead.last.unwrap_or(*events);
                    return Ok(NextFrames::Send(ahead.parts));
                }
                FeedFrames::Head => return Ok(NextFrames::Wait),
                FeedFrames::Expired => {
                    // A cursor that is certainly unknown: the client has to load everything.
                    self.position = ReaderPosition::Opening(FeedStart::Behind(String::new()));
                }
            }
        }
    }

    /// Returns the first frame as soon as the index is open.
    async fn open(&mut self, start: &FeedStart) -> Result<NextFrames, IndexError> {
        let Some((head, events)) = self.tail.head() else {
            return Ok(NextFrames::Wait);
        };
        let mut from = head.clone();
        let mut reset = *start != FeedStart::Newest;
        if let Some(cursor) = start.cursor()
            && cursor.instance == head.instance
            && self.tail.has_all_after(&cursor).await?
        {
            from = cursor;
            reset = false;
        }
        let hello = FeedHello {
            kind: "hello",
            cursor: from.to_string(),
            head: head.to_string(),
            reset,
        };
        let hello = serde_json::to_string(&hello);
        let hello = hello.map_err(|error| IndexError::Interrupted(error.to_string()))?;
        self.position = ReaderPosition::Behind(from, events);
        Ok(NextFrames::Send(vec![wire::text(&hello)]))
    }
}

impl FrameSource for FeedReader {
    async fn next(&mut self) -> NextFrames {
        let read = self.read().await;
        self.has_failed = read.is_err();
        read.unwrap_or_else(|error| {
            // The index comes back, and the position stays valid until then.
            tracing::debug!(%error, "cannot read the index for a stream");
            NextFrames::Wait
        })
    }

    async fn changed(&mut self) {
        if self.has_failed {
            sleep(RETRY_INTERVAL).await;
            return;
        }
        // The sender lives as long as the tail, which this reader shares.
        let _is_open = self.changes.changed().await;
    }

    fn lag(&self) -> StreamLag {
        match &self.position {
            // A client is not slow because of the index.
            ReaderPosition::Behind(..) if self.has_failed => StreamLag::default(),
            ReaderPosition::Behind(cursor, events) => self.tail.lag(cursor, *events),
            ReaderPosition::Opening(_) => StreamLag::default(),
        }
    }
}
