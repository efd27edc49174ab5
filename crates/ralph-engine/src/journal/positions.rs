//! Positions of records in a journal, for readers that continue where they stopped or jump to a record.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use ralph_core::event::JournalRecord;
use ralph_core::id::Digest;

use super::{JournalError, format};
use crate::durable::StoreError;

/// The size of the blocks in which line ends are counted.
const BLOCK_BYTES: usize = 64 * 1024;

/// A position between two records; the chain of the records before it is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPosition {
    /// The number of the record before it; 0 at the start.
    pub seq: u64,
    /// The offset of that record in the file.
    pub record_offset: u64,
    /// The offset after that record.
    pub offset: u64,
    /// The digest of that record; of no bytes at the start.
    pub digest: Digest,
}

impl JournalPosition {
    /// Returns the position before the first record.
    pub fn start() -> Self {
        Self {
            seq: 0,
            record_offset: 0,
            offset: 0,
            digest: Digest::compute(b""),
        }
    }

    /// Returns whether a journal has the same record before this position. Because of the chain, it then
    /// has the same records up to there.
    pub fn is_in(&self, journal: &Path) -> Result<bool, StoreError> {
        let read = || -> io::Result<bool> {
            let mut file = File::open(journal)?;
            file.seek(SeekFrom::Start(self.record_offset))?;
            let mut line = Vec::new();
            file.take(self.offset - self.record_offset)
                .read_to_end(&mut line)?;
            let length = line.iter().rposition(|byte| *byte != b'\n');
            let line = &line[..length.map_or(0, |last| last + 1)];
            Ok(Digest::compute(line) == self.digest)
        };
        read().map_err(StoreError::when("read", journal))
    }
}

/// Passes on the records after a position, each with its offset, and returns the position after the
/// last one. A torn last line is left out. The journal is read in pieces, whatever its size.
pub fn read_after(
    path: &Path,
    after: &JournalPosition,
    each: &mut dyn FnMut(&JournalRecord, u64),
) -> Result<JournalPosition, JournalError> {
    let failed = || StoreError::when("read", path);
    let mut file = File::open(path).map_err(StoreError::when("open", path))?;
    file.seek(SeekFrom::Start(after.offset)).map_err(failed())?;
    let mut reader = BufReader::new(file);
    let mut position = after.clone();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(failed())?;
        let Some(text) = line.strip_suffix(b"\n") else {
            format::refuse_newer_tail(path, &line)?;
            return Ok(position);
        };
        let offset = position.offset;
        position.offset += length as u64;
        if text.is_empty() && position.seq > 0 {
            continue;
        }
        let index = usize::try_from(position.seq).unwrap_or(usize::MAX);
        let record = format::parse(path, index, text)?;
        if record.seq != position.seq + 1 || record.prev != position.digest {
            return Err(JournalError::Damaged {
                path: path.to_owned(),
                line: index + 1,
                why: format!(
                    "record {} does not follow record {}",
                    record.seq, position.seq
                ),
            });
        }
        position.seq = record.seq;
        position.record_offset = offset;
        position.digest = Digest::compute(text);
        each(&record, offset);
    }
}

/// Returns the offset of the record `seq` of a journal, counted from the offset of an earlier record;
/// `None` if the journal is shorter. Only the bytes between the two are read.
pub fn offset_of_record(
    journal: &Path,
    (known_seq, known_offset): (u64, u64),
    seq: u64,
) -> Result<Option<u64>, StoreError> {
    let find = || -> io::Result<Option<u64>> {
        let mut file = File::open(journal)?;
        file.seek(SeekFrom::Start(known_offset))?;
        let mut reader = BufReader::with_capacity(BLOCK_BYTES, file);
        let mut lines = seq.saturating_sub(known_seq);
        let mut offset = known_offset;
        loop {
            let block = reader.fill_buf()?;
            if block.is_empty() {
                return Ok(None);
            }
            if lines == 0 {
                return Ok(Some(offset));
            }
            let end = block.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(block.len(), |end| end + 1);
            lines -= u64::from(end.is_some());
            offset += length as u64;
            reader.consume(length);
        }
    };
    find().map_err(StoreError::when("read", journal))
}
