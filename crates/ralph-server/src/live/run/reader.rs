//! The position of one client in the stream of a run.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::frames::RunHello;
use super::line_search::{find_after, line_start};
use super::tail::{OutputLog, RunTail};
use crate::live::frame_log::CHUNK_BYTES;
use crate::live::kept_frames::FramesAhead;
use crate::live::limits::StreamLag;
use crate::live::source::{FrameSource, NextFrames};
use crate::live::wire::{self, CloseCode};

/// The reason of a close frame after an error.
const UNREADABLE: &str = "the files of the run cannot be read: see the server's log";

/// Where a stream of a run starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunStreamStart {
    /// The number of the last record that the client has.
    pub(crate) after: u64,
    pub(crate) output: OutputStart,
}

/// Where the live output starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OutputStart {
    /// At most 64 KiB before the end.
    #[default]
    Newest,
    /// At a byte of the output of this iteration; at the beginning if the iteration is another one.
    At { iteration: u32, byte: u64 },
    /// The stream has no output.
    Omitted,
}

/// The position of one client in the stream of a run.
#[derive(Debug)]
pub(in crate::live) struct RunReader {
    tail: Arc<RunTail>,
    changes: watch::Receiver<u64>,
    hello: Option<Bytes>,
    /// The position in the journal.
    at: u64,
    /// The number of the last record before it.
    seq: u64,
    output: OutputReader,
}

/// The position of one client in the live output.
#[derive(Debug, Default)]
struct OutputReader {
    is_wanted: bool,
    log: Option<Arc<OutputLog>>,
    at: u64,
}

impl RunReader {
    /// Finds the start of a stream. Blocks.
    pub(in crate::live) fn open(tail: Arc<RunTail>, start: RunStreamStart) -> io::Result<Self> {
        let changes = tail.changes();
        let output = OutputReader::open(&tail, start.output)?;
        let (end, head) = tail.journal.head();
        // The journal of an adopted run is shorter than the lost one.
        let reset = start.after > head;
        let after = if reset { 0 } else { start.after };
        let hello = RunHello {
            kind: "hello",
            run: tail.run(),
            head,
            after,
            reset,
        };
        let hello = serde_json::to_string(&hello)?;
        Ok(Self {
            at: find_after(tail.journal.file(), after, end)?,
            seq: after,
            changes,
            hello: Some(wire::text(&hello)),
            output,
            tail,
        })
    }

    async fn read(&mut self) -> io::Result<NextFrames> {
        self.changes.mark_unchanged();
        if let Some(hello) = self.hello.take() {
            return Ok(NextFrames::Send(vec![hello]));
        }
        // The end is published after the last frames.
        let ended = self.tail.ended();
        // Records after this are sent after the output that was written before them.
        let (head, _) = self.tail.journal.head();
        if let Some(frames) = self.output.read(&self.tail).await? {
            return Ok(NextFrames::Send(frames.parts));
        }
        if let Some(frames) = self.tail.journal.read(self.at, head).await? {
            self.at = frames.end;
            self.seq = frames.last.unwrap_or(self.seq);
            return Ok(NextFrames::Send(frames.parts));
        }
        Ok(ended.map_or(NextFrames::Wait, NextFrames::End))
    }
}

impl FrameSource for RunReader {
    async fn next(&mut self) -> NextFrames {
        self.read().await.unwrap_or_else(|error| {
            tracing::warn!(run = %self.tail.run(), %error, "cannot read the files of a run for a stream");
            NextFrames::End((CloseCode::Failed, UNREADABLE))
        })
    }

    async fn changed(&mut self) {
        // The sender lives as long as the tail, which this reader shares.
        let _is_open = self.changes.changed().await;
    }

    fn lag(&self) -> StreamLag {
        let (end, last) = self.tail.journal.head();
        StreamLag {
            bytes: end.saturating_sub(self.at) + self.output.behind(),
            events: last.saturating_sub(self.seq),
        }
    }
}

impl OutputReader {
    fn open(tail: &RunTail, start: OutputStart) -> io::Result<Self> {
        let log = tail.output();
        let at = match (&log, start) {
            (None, _) | (_, OutputStart::Omitted) => 0,
            (Some(log), OutputStart::At { iteration, byte }) => {
                let is_known = log.iteration == iteration && byte <= log.frames.head().0;
                if is_known { byte } else { 0 }
            }
            (Some(log), OutputStart::Newest) => {
                let (end, _) = log.frames.head();
                line_start(log.frames.file(), end.saturating_sub(CHUNK_BYTES as u64))?
            }
        };
        Ok(Self {
            is_wanted: start != OutputStart::Omitted,
            log,
            at,
        })
    }

    async fn read(&mut self, tail: &RunTail) -> io::Result<Option<FramesAhead<u64>>> {
        while self.is_wanted {
            if let Some(log) = &self.log {
                let (end, _) = log.frames.head();
                if let Some(frames) = log.frames.read(self.at, end).await? {
                    self.at = frames.end;
                    return Ok(Some(frames));
                }
                // The bytes before the end are gone if the file was truncated.
                self.at = self.at.max(end);
            }
            let newest = tail.output();
            let is_newest = match (&self.log, &newest) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(log), Some(newest)) => Arc::ptr_eq(log, newest),
            };
            if is_newest {
                return Ok(None);
            }
            // What was written to the older file just before the newer one appeared is sent first.
            if self.behind() == 0 {
                self.log = newest;
                self.at = 0;
            }
        }
        Ok(None)
    }

    fn behind(&self) -> u64 {
        let end = self.log.as_ref().map_or(0, |log| log.frames.head().0);
        if self.is_wanted {
            end.saturating_sub(self.at)
        } else {
            0
        }
    }
}
