//! The seal of a journal: number and digest of a record, in a file next to it.
//!
//! The chain of a journal protects every record but the last. The seal protects that one, and
//! reveals truncation. A crash leaves a seal that is behind the journal, never one that is ahead of
//! it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::journal::AuditJournal;
use super::report::Findings;

const SEAL_FILE: &str = "journal.seal";

/// The content of a journal's seal.
#[derive(Debug)]
pub(super) enum AuditSeal {
    /// There is no seal, as in runs of older versions.
    Missing,
    /// The seal cannot be read, for this reason.
    Unreadable(String),
    /// The number and the digest of a record.
    Record(u64, String),
}

impl AuditSeal {
    pub(super) fn read(run_dir: &Path) -> Self {
        let bytes = match fs::read(run_dir.join(SEAL_FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::Missing,
            Err(error) => return Self::Unreadable(error.to_string()),
        };
        let value: Value = match serde_json::from_slice(&bytes) {
            Ok(value) => value,
            Err(error) => return Self::Unreadable(format!("invalid JSON: {error}")),
        };
        match (value["seq"].as_u64(), value["sha256"].as_str()) {
            (Some(number), Some(digest)) => Self::Record(number, digest.to_owned()),
            (_, _) => Self::Unreadable("it does not name a record and its sha256".into()),
        }
    }

    /// Compares the journal with its seal.
    pub(super) fn check(&self, journal: &AuditJournal, findings: &mut Findings) {
        let (number, digest) = match self {
            Self::Missing if journal.is_sealed() => {
                return findings.fail(format!("{SEAL_FILE} is missing"));
            }
            Self::Missing => return,
            Self::Unreadable(why) => {
                return findings.fail(format!("{SEAL_FILE} cannot be read: {why}"));
            }
            Self::Record(number, digest) => (*number, digest),
        };
        let lines = journal.digests.len() as u64;
        let index = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .wrapping_sub(1);
        match journal.digests.get(index) {
            Some(found) if found == digest => {}
            Some(_) => findings.fail(format!(
                "record {number} of journal.jsonl does not match {SEAL_FILE}"
            )),
            None => findings.fail(format!(
                "journal.jsonl ends at record {lines}, and {SEAL_FILE} names record {number}: records were cut off"
            )),
        }
    }

    /// Returns whether a crash can have caused the end of a journal: no complete record is missing.
    pub(super) fn allows_torn_end(&self, journal: &AuditJournal) -> bool {
        match self {
            Self::Missing | Self::Unreadable(_) => false,
            Self::Record(number, _) => *number <= journal.digests.len() as u64,
        }
    }
}
