//! The frames of one entry of the feed, read from the journal of its run.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::RangeInclusive;
use std::path::Path;

use ralph_core::id::RunId;
use serde::Serialize;

use super::cursor::{FeedPoint, StreamCursor};
use crate::live::frame_log::{CHUNK_BYTES, MAX_RECORD_BYTES};
use crate::live::run::RecordEncoder;
use crate::live::wire;

/// A change of a run that no record describes.
#[derive(Debug, Serialize)]
struct ChangedFrame<'a> {
    cursor: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    run: &'a RunId,
}

/// The frames of a part of the feed.
#[derive(Debug)]
pub(super) struct FeedPart {
    /// The position behind the frames.
    pub(super) end: StreamCursor,
    pub(super) frames: Vec<u8>,
    pub(super) events: u64,
}

/// Records of an entry that are next in the feed.
#[derive(Debug, Clone)]
pub(super) struct EntryRecords {
    /// The number of the entry.
    pub(super) entry: u64,
    pub(super) numbers: RangeInclusive<u64>,
    /// The offset of the first one in the journal.
    pub(super) offset: u64,
}

/// How far the records of an entry were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryEnd {
    /// Up to the record with this number and this offset, which the run may not have yet.
    Before { seq: u64, offset: u64 },
    /// The journal has other records.
    Lost,
}

impl FeedPart {
    pub(super) fn new(start: StreamCursor) -> Self {
        Self {
            end: start,
            frames: Vec::new(),
            events: 0,
        }
    }

    /// Returns whether the part ends here, because it is long enough or the next one is known.
    pub(super) fn is_complete(&self, limit: FeedPoint) -> bool {
        self.frames.len() >= CHUNK_BYTES || self.end.point >= limit
    }

    /// Adds the frame of an entry without readable records.
    pub(super) fn push_changed(&mut self, entry: u64, run: &RunId) -> serde_json::Result<()> {
        self.end.point = FeedPoint::behind(entry);
        let frame = ChangedFrame {
            cursor: &self.end.to_string(),
            kind: "changed",
            run,
        };
        self.push(&serde_json::to_string(&frame)?);
        Ok(())
    }

    /// Adds the frames of records, until the part is complete. Blocks.
    pub(super) fn read_records(
        &mut self,
        journal: &Path,
        encoder: &RecordEncoder,
        records: &EntryRecords,
        limit: FeedPoint,
    ) -> io::Result<EntryEnd> {
        let mut file = File::open(journal)?;
        file.seek(SeekFrom::Start(records.offset))?;
        let mut reader = BufReader::with_capacity(CHUNK_BYTES, file);
        let mut offset = records.offset;
        let mut line = Vec::new();
        for number in records.numbers.clone() {
            if self.is_complete(limit) {
                let seq = number;
                return Ok(EntryEnd::Before { seq, offset });
            }
            line.clear();
            let mut bounded = reader.by_ref().take(MAX_RECORD_BYTES as u64);
            offset += bounded.read_until(b'\n', &mut line)? as u64;
            let mut behind = self.end.clone();
            behind.point = if number == *records.numbers.end() {
                FeedPoint::behind(records.entry)
            } else {
                FeedPoint {
                    entry: records.entry - 1,
                    seq: number,
                }
            };
            match encoder.frame(&line, Some(&behind.to_string())) {
                Ok((seq, frame)) if seq == number => self.push(&frame),
                Ok(_) | Err(_) => return Ok(EntryEnd::Lost),
            }
            self.end = behind;
        }
        let seq = records.numbers.end() + 1;
        Ok(EntryEnd::Before { seq, offset })
    }

    fn push(&mut self, frame: &str) {
        wire::push_text(&mut self.frames, frame.as_bytes());
        self.events += 1;
    }
}
