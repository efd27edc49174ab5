//! The transcript of an iteration: the standard output of the agent's program, line by line,
//! redacted and limited in size. All sessions of the iteration append to the same file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use ralph_core::ports::TranscriptFormat;
use ralph_core::secret::{RedactStream, Redactor};

use crate::durable::StoreError;

/// The size limit of one iteration's transcript, without the line that reports it.
const MAX_BYTES: u64 = 8 << 20;

/// The text of the last line of a transcript that reached its size limit.
const LIMIT_NOTICE: &str =
    "the transcript of an iteration ends at 8 MiB; the rest of the output is not stored";

/// Appends the output of one session to the transcript. An error ends the writing and is returned
/// by [`TranscriptWriter::finish`], because output arrives where no error can be handled.
pub(super) struct TranscriptWriter {
    file: Option<File>,
    path: PathBuf,
    format: TranscriptFormat,
    /// The remaining bytes up to the size limit.
    room: u64,
    redact: RedactStream,
    /// The redacted start of a line whose end has not arrived.
    pending: Vec<u8>,
    failure: Option<io::Error>,
}

impl TranscriptWriter {
    /// Opens the transcript at `path`; an earlier session may have created it.
    pub(super) fn open(
        path: PathBuf,
        format: TranscriptFormat,
        redactor: &Redactor,
    ) -> Result<Self, StoreError> {
        Self::open_limited(path, format, redactor, MAX_BYTES)
    }

    fn open_limited(
        path: PathBuf,
        format: TranscriptFormat,
        redactor: &Redactor,
        limit: u64,
    ) -> Result<Self, StoreError> {
        let open = || {
            let mut file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            let length = end_last_line(&mut file)?;
            Ok((file, length))
        };
        let (file, length) = open().map_err(StoreError::when("append to", &path))?;
        Ok(Self {
            file: (length < limit).then_some(file),
            path,
            format,
            room: limit.saturating_sub(length),
            redact: redactor.stream(),
            pending: Vec::new(),
            failure: None,
        })
    }

    /// Adds output, which may start and end anywhere.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.file.is_none() {
            return;
        }
        self.redact.push(bytes, &mut self.pending);
        self.write_whole_lines();
    }

    /// Writes the incomplete last line and returns the error that ended the writing, if any.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        let redact = std::mem::replace(&mut self.redact, Redactor::default().stream());
        redact.finish(&mut self.pending);
        if !self.pending.is_empty() && !self.pending.ends_with(b"\n") {
            self.pending.push(b'\n');
        }
        self.write_whole_lines();
        match self.failure.take() {
            Some(error) => Err(StoreError::when("append to", &self.path)(error)),
            None => Ok(()),
        }
    }

    fn write_whole_lines(&mut self) {
        let end = self.pending.iter().rposition(|byte| *byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        let fitting = self.fitting_bytes(whole);
        let mut text: Vec<u8> = self.pending[..fitting].to_vec();
        // A line without an end must not fill the memory.
        let is_full = fitting < whole || self.pending.len() as u64 > self.room;
        if is_full {
            text.extend_from_slice(self.limit_line().as_bytes());
        }
        self.pending.drain(..fitting);
        self.room = self.room.saturating_sub(fitting as u64);
        self.append(&text);
        if is_full {
            self.pending = Vec::new();
            self.file = None;
        }
    }

    /// Returns the length of the lines within the first `whole` bytes that fit into the file.
    fn fitting_bytes(&self, whole: usize) -> usize {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        if whole <= room {
            return whole;
        }
        let end = self.pending[..room].iter().rposition(|byte| *byte == b'\n');
        end.map_or(0, |end| end + 1)
    }

    fn append(&mut self, text: &[u8]) {
        let Some(file) = self.file.as_mut().filter(|_| !text.is_empty()) else {
            return;
        };
        if let Err(error) = file.write_all(text) {
            self.failure = Some(error);
            self.file = None;
        }
    }

    /// Returns the line that reports the size limit, in the format of the other lines.
    fn limit_line(&self) -> String {
        match self.format {
            TranscriptFormat::JsonLines => {
                format!("{}\n", serde_json::json!({ "ralph": LIMIT_NOTICE }))
            }
            TranscriptFormat::Text => format!("… {LIMIT_NOTICE}\n"),
        }
    }
}

/// Ends a line that a killed process left incomplete. Returns the length of the file.
fn end_last_line(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(length);
    }
    file.write_all(b"\n")?;
    Ok(length + 1)
}

#[cfg(test)]
mod tests {
    use ralph_core::secret::Secret;

    use super::*;

    /// Writes the pieces of each session with the given limit, and returns the file.
    fn written(format: TranscriptFormat, limit: u64, sessions: &[&[&str]]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format.file_name());
        let secret = Secret::new("hunter2-hunter2".to_owned());
        let redactor = Redactor::new(vec![("key".to_owned(), secret)]);
        for pieces in sessions {
            let mut transcript =
                TranscriptWriter::open_limited(path.clone(), format, &redactor, limit).unwrap();
            for piece in *pieces {
                transcript.write(piece.as_bytes());
            }
            transcript.finish().unwrap();
        }
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn sessions_follow_each_other_without_secrets() {
        let text = written(
            TranscriptFormat::JsonLines,
            1000,
            &[
                &["{\"a\":\"hunter2-", "hunter2\"}\n{\"b\"", ":1}"],
                &["{\"c\":2}\n"],
            ],
        );
        assert_eq!(text, "{\"a\":\"[REDACTED:key]\"}\n{\"b\":1}\n{\"c\":2}\n");
    }

    #[test]
    fn a_long_transcript_ends_with_a_note() {
        let notice = format!("{{\"ralph\":\"{LIMIT_NOTICE}\"}}\n");
        let json = |pieces: &[&str]| written(TranscriptFormat::JsonLines, 10, &[pieces]);
        assert_eq!(json(&["{\"a\":1}\n"]), "{\"a\":1}\n");
        assert_eq!(
            json(&["{\"a\":1}\n{\"b\":2}\n", "{}\n"]),
            format!("{{\"a\":1}}\n{notice}")
        );
        let endless = "x".repeat(100);
        assert_eq!(json(&[&endless, &endless]), notice);
        let text = written(TranscriptFormat::Text, 4, &[&["one\n", "two\n"], &["a\n"]]);
        assert_eq!(text, format!("one\n… {LIMIT_NOTICE}\n"));
    }

    #[test]
    fn an_incomplete_line_of_a_killed_process_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("transcript.jsonl");
        std::fs::write(&path, "{\"torn").unwrap();
        let format = TranscriptFormat::JsonLines;
        let mut transcript =
            TranscriptWriter::open(path.clone(), format, &Redactor::default()).unwrap();
        transcript.write(b"{}\n");
        transcript.finish().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{\"torn\n{}\n");
    }
}
