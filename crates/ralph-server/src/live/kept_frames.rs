//! The frames that are kept in memory for several clients.

use std::collections::VecDeque;

use bytes::Bytes;

/// The size of the newest frames that are kept.
const MAX_NEWEST_BYTES: usize = 4 << 20;
/// The size of older frames that are kept for other clients at the same position.
const MAX_OLDER_BYTES: usize = 2 << 20;
/// The frames that a client gets at once.
const MAX_SEND_BYTES: usize = 128 << 10;

/// The frames from position `start` to `end` of a stream.
#[derive(Debug, Clone)]
pub(super) struct FrameBatch<P> {
    pub(super) start: P,
    pub(super) end: P,
    pub(super) frames: Bytes,
    /// The number of the last event, if the frames have numbers.
    pub(super) last: Option<u64>,
}

/// Frames for a client, and its position behind them.
#[derive(Debug)]
pub(super) struct FramesAhead<P> {
    pub(super) parts: Vec<Bytes>,
    pub(super) end: P,
    /// The number of the last event, if the frames have numbers.
    pub(super) last: Option<u64>,
}

/// The frames that are kept in memory for several clients: the newest ones, and a few older ones for
/// clients that come back at the same time.
#[derive(Debug)]
pub(super) struct KeptFrames<P> {
    /// Without gaps, up to `end`.
    newest: VecDeque<FrameBatch<P>>,
    newest_bytes: usize,
    end: P,
    /// The number of the last event before `end`.
    last: u64,
    older: VecDeque<FrameBatch<P>>,
    older_bytes: usize,
}

impl<P> From<FrameBatch<P>> for FramesAhead<P> {
    fn from(batch: FrameBatch<P>) -> Self {
        Self {
            parts: vec![batch.frames],
            end: batch.end,
            last: batch.last,
        }
    }
}

impl<P: Copy + Ord> KeptFrames<P> {
    /// Keeps frames from a position. `last` is the number of the event before it.
    pub(super) fn new(end: P, last: u64) -> Self {
        Self {
            newest: VecDeque::new(),
            newest_bytes: 0,
            end,
            last,
            older: VecDeque::new(),
            older_bytes: 0,
        }
    }

    /// Returns the position behind the newest frames, and the number of the last event.
    pub(super) fn head(&self) -> (P, u64) {
        (self.end, self.last)
    }

    pub(super) fn forget(&mut self) {
        *self = Self::new(self.end, self.last);
    }

    pub(super) fn push(&mut self, batch: FrameBatch<P>) {
        self.end = batch.end;
        self.last = batch.last.unwrap_or(self.last);
        self.newest_bytes += batch.frames.len();
        self.newest.push_back(batch);
        while self.newest_bytes > MAX_NEWEST_BYTES {
            let Some(first) = self.newest.pop_front() else {
                break;
            };
            self.newest_bytes -= first.frames.len();
        }
    }

    pub(super) fn keep_older(&mut self, batch: FrameBatch<P>) {
        self.older_bytes += batch.frames.len();
        self.older.push_back(batch);
        while self.older_bytes > MAX_OLDER_BYTES {
            let Some(first) = self.older.pop_front() else {
                break;
            };
            self.older_bytes -= first.frames.len();
        }
    }

    /// Returns the kept frames that start exactly at `at`, and those that follow.
    pub(super) fn find(&self, at: P, limit: P) -> Option<FramesAhead<P>> {
        let index = self.newest.partition_point(|batch| batch.start < at);
        let is_newest = self
            .newest
            .get(index)
            .is_some_and(|batch| batch.start == at);
        let mut found = FramesAhead {
            parts: Vec::new(),
            end: at,
            last: None,
        };
        let mut bytes = 0;
        let newest = self.newest.range(index..).filter(|_| is_newest);
        let older = self
            .older
            .iter()
            .filter(|batch| !is_newest && batch.start == at);
        for batch in newest.chain(older.take(1)) {
            if batch.start >= limit || (bytes > 0 && bytes + batch.frames.len() > MAX_SEND_BYTES) {
                break;
            }
            bytes += batch.frames.len();
            found.parts.push(batch.frames.clone());
            found.end = batch.end;
            found.last = batch.last.or(found.last);
        }
        (found.end > at).then_some(found)
    }

    /// Returns the size of the frames after `at`: more than all that may be kept if they are not.
    pub(super) fn bytes_after(&self, at: P) -> u64 {
        if at >= self.end {
            return 0;
        }
        if self.newest.front().is_none_or(|first| first.start > at) {
            return MAX_NEWEST_BYTES as u64 + 1;
        }
        let after = self.newest.iter().filter(|batch| batch.end > at);
        after.map(|batch| batch.frames.len() as u64).sum()
    }

    /// Returns where a part that starts at `at` has to end, so that the next one is kept: at the start of
    /// the next kept part, or at the end of the part that contains `at`.
    pub(super) fn limit_after(&self, at: P) -> P {
        let index = self.newest.partition_point(|batch| batch.end <= at);
        match self.newest.get(index) {
            Some(batch) if batch.start <= at => batch.end,
            Some(batch) => batch.start,
            None => self.end,
        }
    }
}
