//! Follows the feed of the index, as long as it has readers.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ralph_core::id::RunId;
use ralph_core::secret::Redactor;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use super::cursor::{FeedPoint, StreamCursor};
use super::entry::{EntryEnd, EntryRecords, FeedPart};
use crate::index::{FeedEntry, FeedPage, FeedPosition, IndexError, RunIndex};
use crate::live::kept_frames::{FrameBatch, FramesAhead, KeptFrames};
use crate::live::limits::StreamLag;
use crate::live::run::RecordEncoder;

/// The entries that are read at once.
const MAX_ENTRIES: u32 = 64;
/// The number of runs whose end in their journal is remembered.
const MAX_OFFSETS: usize = 1024;

/// The newest frames of all runs, shared by all readers.
#[derive(Debug)]
pub(in crate::live) struct FeedTail {
    index: RunIndex,
    redactor: Redactor,
    frames: Mutex<InstanceFrames>,
    /// One client at a time encodes older frames: the others probably need the same ones.
    older: Semaphore,
    /// The number and the offset of the record that a run will have next.
    offsets: Mutex<HashMap<RunId, (u64, u64)>>,
    changed: watch::Sender<u64>,
}

/// The frames of one instance of the feed.
#[derive(Debug)]
struct InstanceFrames {
    /// Empty until the index is open.
    instance: String,
    kept: KeptFrames<FeedPoint>,
}

/// What follows a position.
#[derive(Debug)]
pub(super) enum FeedFrames {
    Ahead(FramesAhead<FeedPoint>),
    /// The position is the head.
    Head,
    /// The feed does not have what followed the position.
    Expired,
}

impl FeedTail {
    /// Starts at the head of the feed.
    pub(in crate::live) fn new(index: RunIndex, redactor: Redactor) -> Self {
        let head = index.feed_head().borrow().clone();
        Self {
            frames: Mutex::new(InstanceFrames::new(&head)),
            index,
            redactor,
            older: Semaphore::new(1),
            offsets: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Returns a receiver that changes when there are new frames or another instance.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns a receiver of the head of the index.
    pub(in crate::live) fn index_head(&self) -> watch::Receiver<FeedPosition> {
        self.index.feed_head()
    }

    /// Returns the position behind the newest frames, and the number of the events before it since the
    /// start of the tail; none until the index is open.
    pub(super) fn head(&self) -> Option<(StreamCursor, u64)> {
        let frames = lock(&self.frames);
        let (point, events) = frames.kept.head();
        let instance = frames.instance.clone();
        (!instance.is_empty()).then_some((StreamCursor { instance, point }, events))
    }

    /// Returns whether the feed has all events behind a position.
    pub(super) async fn has_all_after(&self, cursor: &StreamCursor) -> Result<bool, IndexError> {
        let page = self.index.feed_after(&cursor.position(), 1).await?;
        Ok(page != FeedPage::Expired)
    }

    /// Returns how far a position is behind, with the number of the events before it.
    pub(super) fn lag(&self, cursor: &StreamCursor, events: u64) -> StreamLag {
        let frames = lock(&self.frames);
        if frames.instance != cursor.instance {
            return StreamLag::default();
        }
        StreamLag {
            bytes: frames.kept.bytes_after(cursor.point),
            events: frames.kept.head().1.saturating_sub(events),
        }
    }

    /// Encodes what the feed has gained.
    pub(in crate::live) async fn follow(&self) -> Result<(), IndexError> {
        loop {
            let head = self.index.feed_head().borrow().clone();
            if head.instance.is_empty() {
                return Ok(());
            }
            let (from, events) = {
                let frames = lock(&self.frames);
                (frames.end(), frames.kept.head().1)
            };
            if from.instance != head.instance {
                self.restart(&head);
                continue;
            }
            if from.point.entry >= head.position {
                return Ok(());
            }
            match self.encode(&from, FeedPoint::END).await? {
                Some(part) => {
                    let batch = part.batch(&from, Some(events));
                    lock(&self.frames).kept.push(batch);
                    self.publish();
                }
                None => self.restart(&head),
            }
        }
    }

    /// Forgets encoded frames that no client will need soon.
    pub(in crate::live) fn forget(&self) {
        lock(&self.frames).kept.forget();
        lock(&self.offsets).clear();
    }

    /// Returns the frames behind a position.
    pub(super) async fn read(&self, at: &StreamCursor) -> Result<FeedFrames, IndexError> {
        if let Some(found) = self.find(at) {
            return Ok(found);
        }
        let _only = self.older.acquire().await;
        if let Some(found) = self.find(at) {
            return Ok(found);
        }
        let limit = lock(&self.frames).kept.limit_after(at.point);
        let Some(part) = self.encode(at, limit).await? else {
            return Ok(FeedFrames::Expired);
        };
        let batch = part.batch(at, None);
        let mut frames = lock(&self.frames);
        if frames.instance == at.instance {
            frames.kept.keep_older(batch.clone());
        }
        Ok(FeedFrames::Ahead(batch.into()))
    }

    /// Returns what follows a position if it needs no file.
    fn find(&self, at: &StreamCursor) -> Option<FeedFrames> {
        let frames = lock(&self.frames);
        let head = frames.end();
        if head.instance != at.instance {
            return Some(FeedFrames::Expired);
        }
        if at.point >= head.point {
            return Some(FeedFrames::Head);
        }
        let ahead = frames.kept.find(at.point, head.point)?;
        Some(FeedFrames::Ahead(ahead))
    }

    /// Encodes the events behind a position; none if the position has expired.
    async fn encode(
        &self,
        from: &StreamCursor,
        limit: FeedPoint,
    ) -> Result<Option<FeedPart>, IndexError> {
        let page = self.index.feed_after(&from.position(), MAX_ENTRIES).await?;
        let FeedPage::Entries(entries) = page else {
            return Ok(None);
        };
        let mut part = FeedPart::new(from.clone());
        for entry in entries {
            if part.is_complete(limit) {
                break;
            }
            part = self.add_entry(part, &entry, limit).await?;
        }
        Ok((part.end != *from).then_some(part))
    }

    async fn add_entry(
        &self,
        part: FeedPart,
        entry: &FeedEntry,
        limit: FeedPoint,
    ) -> Result<FeedPart, IndexError> {
        let first = entry.first_seq.max(part.end.point.seq + 1);
        let mut records = EntryRecords {
            entry: entry.position,
            numbers: first..=entry.last_seq,
            offset: 0,
        };
        let known = lock(&self.offsets).get(&entry.run).copied();
        let known = known.filter(|(seq, _)| *seq == first);
        if records.numbers.is_empty() {
            return changed(part, entry);
        }
        records.offset = match known {
            Some((_, offset)) => offset,
            None => match self.index.offset_of(&entry.run, first).await {
                Ok(Some(offset)) => offset,
                Ok(None) => return changed(part, entry),
                Err(error) => {
                    tracing::debug!(run = %entry.run, %error, "the records of a run are gone");
                    return changed(part, entry);
                }
            },
        };
        let run = &entry.run;
        let journal = self.index.journal(run)?;
        let encoder = RecordEncoder {
            run: run.clone(),
            redactor: self.redactor.clone(),
        };
        let read = spawn_blocking(move || {
            let mut part = part;
            let end = part.read_records(&journal, &encoder, &records, limit);
            (part, end)
        });
        let (part, end) = read.await.map_err(interrupted)?;
        match end {
            Ok(EntryEnd::Before { seq, offset }) => {
                self.remember(run, (seq, offset));
                Ok(part)
            }
            Ok(EntryEnd::Lost) => changed(part, entry),
            Err(error) => {
                tracing::debug!(%run, %error, "the records of a run cannot be read");
                changed(part, entry)
            }
        }
    }

    fn remember(&self, run: &RunId, next: (u64, u64)) {
        let mut offsets = lock(&self.offsets);
        if offsets.len() >= MAX_OFFSETS {
            offsets.clear();
        }
        offsets.insert(run.clone(), next);
    }

    /// Continues at the head: the readers notice that their positions have no meaning any more.
    fn restart(&self, head: &FeedPosition) {
        *lock(&self.frames) = InstanceFrames::new(head);
        lock(&self.offsets).clear();
        self.publish();
    }

    fn publish(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl InstanceFrames {
    fn new(head: &FeedPosition) -> Self {
        let StreamCursor { instance, point } = StreamCursor::head(head);
        Self {
            instance,
            kept: KeptFrames::new(point, 0),
        }
    }

    fn end(&self) -> StreamCursor {
        StreamCursor {
            instance: self.instance.clone(),
            point: self.kept.head().0,
        }
    }
}

impl FeedPart {
    /// Returns the frames behind `start`. `before` is the number of the events before them.
    fn batch(self, start: &StreamCursor, before: Option<u64>) -> FrameBatch<FeedPoint> {
        FrameBatch {
            start: start.point,
            end: self.end.point,
            frames: self.frames.into(),
            last: before.map(|before| before + self.events),
        }
    }
}

/// Adds an entry that has no records, or whose records are gone.
fn changed(mut part: FeedPart, entry: &FeedEntry) -> Result<FeedPart, IndexError> {
    part.push_changed(entry.position, &entry.run)
        .map_err(interrupted)?;
    Ok(part)
}

fn interrupted(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> IndexError {
    IndexError::Interrupted(io::Error::other(error).to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
