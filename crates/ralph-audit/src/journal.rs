//! Reads a journal as plain JSON lines and records breaks of its chain.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::digest::sha256;

/// The supported record format.
const VERSION: u64 = 1;

/// A journal as stored on disk.
#[derive(Debug, Default)]
pub(super) struct AuditJournal {
    /// One record per readable line.
    pub(super) records: Vec<AuditRecord>,
    /// The problems of the file.
    pub(super) damage: Vec<String>,
    /// Set if the file ends in the middle of a record, as after a crash.
    pub(super) torn: Option<String>,
    /// The SHA-256 of each complete line.
    pub(super) digests: Vec<String>,
    /// In bytes.
    pub(super) length: u64,
}

/// A line of the journal.
#[derive(Debug)]
pub(super) struct AuditRecord {
    /// The line number, which is also the expected record number.
    pub(super) number: u64,
    line: Value,
}

impl AuditRecord {
    /// Returns the event's type.
    pub(super) fn kind(&self) -> &str {
        self.text("type")
    }

    /// Returns the event.
    pub(super) fn event(&self) -> &Value {
        &self.line["event"]
    }

    /// Returns a string of the event, empty if it is missing.
    pub(super) fn text(&self, key: &str) -> &str {
        self.event()[key].as_str().unwrap_or_default()
    }

    /// Returns an integer of the event.
    pub(super) fn event_u64(&self, key: &str) -> Option<u64> {
        self.event()[key].as_u64()
    }

    /// Returns an integer of the frame, such as `epoch`.
    pub(super) fn frame_u64(&self, key: &str) -> Option<u64> {
        self.line[key].as_u64()
    }

    /// Describes the record for findings.
    pub(super) fn describe(&self) -> String {
        format!("record {} (`{}`)", self.number, self.kind())
    }
}

impl AuditJournal {
    /// Reads a journal. Damage is recorded and not an error, because the rest may still be useful.
    pub(super) fn read(path: &Path) -> Self {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                return Self {
                    damage: vec![format!("journal.jsonl cannot be read: {error}")],
                    ..Self::default()
                };
            }
        };
        let mut journal = Self {
            length: bytes.len() as u64,
            ..Self::default()
        };
        let mut previous = sha256(b"");
        for (line, number) in bytes.split_inclusive(|byte| *byte == b'\n').zip(1..) {
            let Some(text) = line.strip_suffix(b"\n") else {
                journal.torn = Some(format!(
                    "journal.jsonl ends in the middle of record {number}: {} bytes without a newline",
                    line.len()
                ));
                break;
            };
            journal.push_line(number, text, &previous);
            previous = sha256(text);
            journal.digests.push(previous.clone());
        }
        let first = journal.records.first().map_or("", AuditRecord::kind);
        if first != "run_created" {
            journal
                .damage
                .push("journal.jsonl does not begin with `run_created`".into());
        }
        journal
    }

    /// Returns whether the versions that wrote the journal also sealed it.
    pub(super) fn is_sealed(&self) -> bool {
        let mut opened = self
            .records
            .iter()
            .filter(|record| record.kind() == "run_opened");
        opened.any(|record| !record.text("ralph").is_empty())
    }

    fn push_line(&mut self, number: u64, text: &[u8], previous: &str) {
        match serde_json::from_slice::<Value>(text) {
            Ok(line) if line.is_object() => {
                self.damage.extend(frame_problems(&line, number, previous));
                self.records.push(AuditRecord { number, line });
            }
            Ok(_) => self
                .damage
                .push(format!("record {number} is not a JSON object")),
            Err(error) => self
                .damage
                .push(format!("record {number} is not JSON: {error}")),
        }
    }
}

/// Returns the problems of a record's frame.
fn frame_problems(line: &Value, number: u64, previous: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if line["v"].as_u64() != Some(VERSION) {
        problems.push(format!(
            "record {number} has version {}, only {VERSION} is known",
            line["v"]
        ));
    }
    if line["seq"].as_u64() != Some(number) {
        problems.push(format!(
            "line {number} of journal.jsonl has the number {}",
            line["seq"]
        ));
    }
    if line["prev"].as_str() != Some(previous) {
        problems.push(format!(
            "record {number} does not follow the record before it in journal.jsonl: `prev` is not its sha256"
        ));
    }
    let at = line["at"].as_str().unwrap_or_default();
    if at.parse::<jiff::Timestamp>().is_err() {
        problems.push(format!(
            "record {number} has no time: `at` is {}",
            line["at"]
        ));
    }
    problems
}
