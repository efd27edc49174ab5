//! The frames of a run: its records, and the output of the running command.

use std::borrow::Cow;
use std::io;

use ralph_app::logs::incomplete_character;
use ralph_core::id::RunId;
use ralph_core::printable;
use ralph_core::secret::Redactor;
use ralph_engine::redaction::redact_json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::live::frame_log::{CHUNK_BYTES, EncodedFrames, FrameEncoder};
use crate::live::wire;

/// The first frame of a run's stream.
#[derive(Debug, Serialize)]
pub(super) struct RunHello<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) run: &'a RunId,
    /// The number of the last record.
    pub(super) head: u64,
    /// The number after which the stream starts.
    pub(super) after: u64,
    /// Whether the client knew a number that the journal does not have, and has to start again.
    pub(super) reset: bool,
}

/// The parts of a journal's line that a frame needs.
#[derive(Debug, Deserialize)]
struct RecordLine<'a> {
    seq: u64,
    #[serde(borrow)]
    at: &'a RawValue,
    #[serde(borrow)]
    event: &'a RawValue,
}

#[derive(Debug, Deserialize)]
struct EventKind<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

/// The frame of a record.
#[derive(Debug, Serialize)]
struct RecordFrame<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    seq: u64,
    ts: &'a RawValue,
    run: &'a RunId,
    #[serde(rename = "type")]
    kind: &'a str,
    data: &'a RawValue,
}

/// The frame of a part of the live output.
#[derive(Debug, Serialize)]
struct OutputFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    run: &'a RunId,
    iteration: u32,
    /// The part's position in the iteration's output, in bytes.
    from: u64,
    to: u64,
    text: &'a str,
}

/// Encodes the records of a run.
#[derive(Debug)]
pub(in crate::live) struct RecordEncoder {
    pub(in crate::live) run: RunId,
    pub(in crate::live) redactor: Redactor,
}

impl FrameEncoder for RecordEncoder {
    fn encode(&self, bytes: &[u8], offset: u64) -> io::Result<EncodedFrames> {
        let mut encoded = EncodedFrames::default();
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            let at = offset + encoded.consumed as u64;
            encoded.consumed += line.len();
            if line == b"\n" {
                continue;
            }
            let (seq, frame) = self
                .frame(line, None)
                .map_err(|error| damaged(at, &error))?;
            wire::push_text(&mut encoded.frames, frame.as_bytes());
            encoded.last = Some(seq);
        }
        Ok(encoded)
    }
}

impl RecordEncoder {
    /// Returns the number and the frame of a line, with its cursor if the stream has cursors.
    pub(in crate::live) fn frame(
        &self,
        line: &[u8],
        cursor: Option<&str>,
    ) -> serde_json::Result<(u64, String)> {
        let record: RecordLine<'_> = serde_json::from_slice(line)?;
        let event: EventKind<'_> = serde_json::from_str(record.event.get())?;
        let mut frame = RecordFrame {
            cursor,
            seq: record.seq,
            ts: record.at,
            run: &self.run,
            kind: &event.kind,
            data: record.event,
        };
        // Journals contain no secrets, except those that were unknown when they were written.
        let is_clean = matches!(self.redactor.redact(record.event.get()), Cow::Borrowed(_));
        let redacted;
        if !is_clean {
            let event = serde_json::from_str(record.event.get())?;
            redacted = serde_json::value::to_raw_value(&redact_json(&self.redactor, event))?;
            frame.data = &redacted;
        }
        Ok((record.seq, serde_json::to_string(&frame)?))
    }
}

/// Returns the number of a record.
pub(super) fn record_number(line: &[u8]) -> serde_json::Result<u64> {
    Ok(serde_json::from_slice::<RecordLine<'_>>(line)?.seq)
}

/// Returns the error of a journal with a line that is no record.
pub(super) fn damaged(offset: u64, error: &serde_json::Error) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the journal is damaged at byte {offset}: {error}"),
    )
}

/// Encodes the live output of an iteration.
#[derive(Debug)]
pub(super) struct OutputEncoder {
    pub(super) run: RunId,
    pub(super) iteration: u32,
    pub(super) redactor: Redactor,
}

impl FrameEncoder for OutputEncoder {
    fn encode(&self, bytes: &[u8], offset: u64) -> io::Result<EncodedFrames> {
        let mut encoded = EncodedFrames::default();
        let bytes = &bytes[..bytes.len().min(CHUNK_BYTES)];
        let part = &bytes[..whole_text(bytes)];
        if part.is_empty() {
            return Ok(encoded);
        }
        let text = String::from_utf8_lossy(part);
        let frame = OutputFrame {
            kind: "output",
            run: &self.run,
            iteration: self.iteration,
            from: offset,
            to: offset + part.len() as u64,
            text: &self.redactor.redact(&text),
        };
        let frame = serde_json::to_string(&frame)?;
        let frame = printable::escape_json(&frame);
        wire::push_text(&mut encoded.frames, frame.as_bytes());
        encoded.consumed = part.len();
        Ok(encoded)
    }
}

/// Returns the length of the part that does not end inside a character, and inside a line only if it is
/// shorter than a full chunk.
fn whole_text(bytes: &[u8]) -> usize {
    if bytes.len() >= CHUNK_BYTES
        && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n')
    {
        return end + 1;
    }
    bytes.len() - incomplete_character(bytes)
}
