//! Finds lines in a growing file without reading all of it. Records are numbered in order, so a binary
//! search over the bytes of a journal finds a number.

use std::fs::File;
use std::io;

use super::frames::{damaged, record_number};
use crate::live::frame_log::read_at;

/// The bytes that are read at once.
const STEP_BYTES: usize = 8 << 10;

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) struct JournalHead {
    /// The position behind the last whole line.
    pub(in crate::live) end: u64,
    /// The number of the last record; 0 without any.
    pub(in crate::live) last: u64,
}

/// Returns the end of a journal; an incomplete last line is left out.
pub(in crate::live) fn find_head(file: &File) -> io::Result<JournalHead> {
    let length = file.metadata()?.len();
    let end = line_start(file, length)?;
    let last = match end {
        0 => 0,
        end => number_at(file, line_start(file, end - 1)?, end)?,
    };
    Ok(JournalHead { end, last })
}

/// Returns the position of the first record after number `after`, or `end`.
pub(in crate::live) fn find_after(file: &File, after: u64, end: u64) -> io::Result<u64> {
    // The record at `low` and all before it have at most the number, the one at `high` has a higher one.
    let (mut low, mut high) = (0, end);
    if end == 0 || number_at(file, 0, end)? > after {
        return Ok(0);
    }
    while next_line(file, low, end)? < high {
        let middle = line_start(file, low + (high - low) / 2)?;
        let probe = if middle <= low {
            next_line(file, low, end)?
        } else {
            middle
        };
        if number_at(file, probe, end)? <= after {
            low = probe;
        } else {
            high = probe;
        }
    }
    Ok(high)
}

/// Returns the start of the line that contains `at`; `at` itself if it is one.
pub(crate) fn line_start(file: &File, at: u64) -> io::Result<u64> {
    let mut end = at;
    while end > 0 {
        let start = end.saturating_sub(STEP_BYTES as u64);
        let bytes = read_at(
            file,
            start,
            usize::try_from(end - start).map_err(io::Error::other)?,
        )?;
        if let Some(newline) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the start of the line after the one that starts at `at`, or `end`.
fn next_line(file: &File, at: u64, end: u64) -> io::Result<u64> {
    let mut start = at;
    while start < end {
        let bytes = read_at(file, start, STEP_BYTES)?;
        if let Some(newline) = bytes.iter().position(|byte| *byte == b'\n') {
            return Ok((start + newline as u64 + 1).min(end));
        }
        if bytes.is_empty() {
            break;
        }
        start += bytes.len() as u64;
    }
    Ok(end)
}

fn number_at(file: &File, at: u64, end: u64) -> io::Result<u64> {
    let next = next_line(file, at, end)?;
    let line = read_at(
        file,
        at,
        usize::try_from(next - at).map_err(io::Error::other)?,
    )?;
    record_number(&line).map_err(|error| damaged(at, &error))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Writes a journal whose lines have these lengths, approximately.
    fn journal(lengths: &[usize]) -> (tempfile::NamedTempFile, Vec<u64>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut starts = vec![];
        let mut at = 0;
        for (index, length) in lengths.iter().enumerate() {
            starts.push(at);
            let line = format!(
                "{{\"seq\":{},\"at\":\"t\",\"event\":{{\"type\":\"notice\",\"message\":\"{}\"}}}}\n",
                index + 1,
                "x".repeat(*length)
            );
            at += line.len() as u64;
            file.write_all(line.as_bytes()).unwrap();
        }
        starts.push(at);
        (file, starts)
    }

    #[test]
    fn every_number_is_found_among_short_and_long_lines() {
        for lengths in [
            vec![],
            vec![10],
            vec![0; 50],
            vec![40_000; 9],
            [
                vec![5; 100],
                vec![100_000],
                vec![5; 3],
                vec![30_000; 2],
                vec![1; 100],
            ]
            .concat(),
        ] {
            let (mut file, starts) = journal(&lengths);
            file.write_all(b"{\"seq\":torn").unwrap();
            let head = find_head(file.as_file()).unwrap();
            let count = lengths.len();
            assert_eq!((head.end, head.last), (starts[count], count as u64));
            for after in 0..=count + 2 {
                let expected = starts[after.min(count)];
                let found = find_after(file.as_file(), after as u64, head.end).unwrap();
                assert_eq!(found, expected, "{after} of {count}");
            }
        }
    }

    #[test]
    fn a_damaged_line_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\xff\xfe not a record\n").unwrap();
        let error = find_head(file.as_file()).unwrap_err();
        assert!(error.to_string().contains("damaged at byte 0"), "{error}");
    }
}
