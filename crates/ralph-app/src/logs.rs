//! Reads parts of the logs of a run by their byte offsets, while they grow.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use ralph_core::id::Digest;
use ralph_core::secret::Redactor;
use ralph_engine::durable::StoreError;

/// The bytes before a position that identify it.
const MARK_BYTES: u64 = 64;

/// The part of a log to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    pub start: LogStart,
    /// The number of bytes to read.
    pub limit: u64,
}

/// Where a part of a log starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogStart {
    /// At a byte, with the mark of the part that ended there, if it is known.
    Byte { at: u64, mark: Option<String> },
    /// So many bytes before the end, at the start of a line.
    BeforeEnd(u64),
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Whole lines if more follows; invalid bytes are replaced.
    pub text: String,
    /// The position of the text in the file, in bytes.
    pub from: u64,
    pub to: u64,
    /// The size of the file.
    pub size: u64,
    /// Identifies the file and its content before `to`; for the next request.
    pub mark: String,
    /// The file is not the one that the mark identifies, so the part starts at its beginning.
    pub restarted: bool,
}

/// Reads a part of a log; none if the file does not exist.
pub fn read_log(
    path: &Path,
    request: &LogRequest,
    redactor: &Redactor,
) -> Result<Option<LogPart>, StoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::when("open", path)(error)),
    };
    read_part(&file, request, redactor)
        .map(Some)
        .map_err(StoreError::when("read", path))
}

fn read_part(file: &File, request: &LogRequest, redactor: &Redactor) -> io::Result<LogPart> {
    let size = file.metadata()?.len();
    let (from, restarted) = match &request.start {
        LogStart::Byte { at, mark } => {
            let is_known = *at <= size
                && match mark {
                    Some(mark) => *mark == mark_at(file, *at)?,
                    None => true,
                };
            if is_known { (*at, false) } else { (0, true) }
        }
        LogStart::BeforeEnd(bytes) => (line_start_after(file, size.saturating_sub(*bytes))?, false),
    };
    let mut bytes = read_at(file, from, request.limit)?;
    let end = from + bytes.len() as u64;
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(newline) if end < size => newline + 1,
        Some(_) | None => bytes.len() - incomplete_character(&bytes),
    };
    bytes.truncate(whole);
    let to = from + whole as u64;
    let text = String::from_utf8_lossy(&bytes);
    Ok(LogPart {
        text: redactor.redact(&text).into_owned(),
        from,
        to,
        size: size.max(to),
        mark: mark_at(file, to)?,
        restarted,
    })
}

/// Returns the mark of a position: the file, and a digest of what precedes the position.
fn mark_at(file: &File, at: u64) -> io::Result<String> {
    let start = at.saturating_sub(MARK_BYTES);
    let mut before = Vec::new();
    before.extend_from_slice(&at.to_be_bytes());
    before.extend(read_at(file, start, at - start)?);
    let digest = Digest::compute(&before);
    Ok(format!(
        "{:x}-{}",
        file.metadata()?.ino(),
        &digest.as_str()[..16]
    ))
}

/// Returns the start of the first line at or after a position; the position itself if no line starts
/// there.
fn line_start_after(file: &File, at: u64) -> io::Result<u64> {
    if at == 0 {
        return Ok(0);
    }
    let mut reader = io::BufReader::new(PositionedReader { file, at: at - 1 });
    let mut skipped = Vec::new();
    let line =
        io::BufRead::read_until(&mut reader.by_ref().take(MAX_SKIPPED), b'\n', &mut skipped)?;
    let is_line = skipped.ends_with(b"\n");
    Ok(if is_line { at - 1 + line as u64 } else { at })
}

/// The longest part of a line that a tail skips.
const MAX_SKIPPED: u64 = 1 << 20;

/// Reads a file from a position, without a seek.
struct PositionedReader<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for PositionedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn read_at(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    PositionedReader { file, at }
        .take(length)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the number of bytes at the end that may be the start of a character.
pub fn incomplete_character(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for (index, byte) in tail.iter().enumerate().rev() {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        let found = tail.len() - index;
        return if found < length { found } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    struct LogFixture {
        dir: tempfile::TempDir,
    }

    impl LogFixture {
        fn path(&self) -> PathBuf {
            self.dir.path().join("activity.log")
        }

        fn append(&self, bytes: &[u8]) {
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(self.path());
            file.unwrap().write_all(bytes).unwrap();
        }

        fn read(&self, start: LogStart, limit: u64) -> LogPart {
            let request = LogRequest { start, limit };
            read_log(&self.path(), &request, &Redactor::default())
                .unwrap()
                .unwrap()
        }

        fn after(&self, part: &LogPart) -> LogPart {
            let start = LogStart::Byte {
                at: part.to,
                mark: Some(part.mark.clone()),
            };
            self.read(start, 1000)
        }
    }

    fn fixture(text: &str) -> LogFixture {
        let fixture = LogFixture {
            dir: tempfile::tempdir().unwrap(),
        };
        fixture.append(text.as_bytes());
        fixture
    }

    fn start() -> LogStart {
        LogStart::Byte { at: 0, mark: None }
    }

    #[test]
    fn a_growing_log_is_read_in_whole_lines_and_characters() {
        let text = "one\ntwo äöü 🦀\nthree\n".repeat(50);
        for limit in [5, 16, 17, 18, 40, 1 << 20] {
            let log = fixture(&text);
            let mut part = log.read(start(), limit);
            let mut seen = part.text.clone();
            while part.to < part.size {
                let mark = Some(part.mark.clone());
                part = log.read(LogStart::Byte { at: part.to, mark }, limit);
                assert!(!part.restarted && !part.text.is_empty());
                seen.push_str(&part.text);
            }
            assert_eq!(seen, text, "{limit}");
        }
        let log = fixture("whole\nhalf \u{e4}");
        log.append(&[0xf0, 0x9f]);
        let part = log.read(start(), 1000);
        assert_eq!((part.text.as_str(), part.to), ("whole\nhalf ä", 13));
        log.append(&[0xa6, 0x80, b'\n']);
        assert_eq!(log.after(&part).text, "\u{1f980}\n");
    }

    #[test]
    fn a_log_that_was_truncated_or_replaced_is_read_from_its_beginning() {
        let log = fixture("first line\nsecond line\n");
        let part = log.read(start(), 1000);
        fs::write(log.path(), "short\n").unwrap();
        let after = log.after(&part);
        assert_eq!(
            (after.restarted, after.from, after.text.as_str()),
            (true, 0, "short\n")
        );
        let without = LogStart::Byte {
            at: part.to,
            mark: None,
        };
        assert!(log.read(without, 10).restarted);
        // Truncated, and then longer than before.
        let part = log.read(start(), 1000);
        fs::write(log.path(), "other\nand more lines than before\n").unwrap();
        assert_eq!(log.after(&part).from, 0);
        // Rotated: the same text in another file.
        let part = log.read(start(), 1000);
        fs::rename(log.path(), log.dir.path().join("activity.log.1")).unwrap();
        log.append(b"other\nand more lines than before\nnew\n");
        let after = log.after(&part);
        assert!(after.restarted);
        assert!(!log.after(&after).restarted);
        fs::remove_file(log.path()).unwrap();
        let request = LogRequest {
            start: start(),
            limit: 1,
        };
        assert_eq!(
            read_log(&log.path(), &request, &Redactor::default()).unwrap(),
            None
        );
    }

    #[test]
    fn the_last_lines_are_whole() {
        let log = fixture("one\ntwo\nthree\n");
        for (bytes, text) in [
            (0, ""),
            (1, ""),
            (6, "three\n"),
            (7, "three\n"),
            (10, "two\nthree\n"),
            (14, "one\ntwo\nthree\n"),
            (1000, "one\ntwo\nthree\n"),
        ] {
            let part = log.read(LogStart::BeforeEnd(bytes), 1000);
            assert_eq!(part.text, text, "{bytes}");
            assert_eq!(part.to - part.from, text.len() as u64);
        }
        let unfinished = fixture(&"x".repeat(100));
        assert_eq!(unfinished.read(LogStart::BeforeEnd(10), 1000).from, 90);
    }
}
