//! The seal of a journal: number and digest of its last record, in a file beside it.
//!
//! The chain of digests does not protect the last record, and a journal that was cut off between
//! two records is a valid shorter one. The seal is written when a process opens the journal and
//! when it closes it, so it is never ahead of the journal. After a crash it is behind, which is not
//! an error.

use std::path::Path;
use std::{fs, io};

use ralph_core::id::Digest;
use serde::Serialize;
use serde_json::Value;

use super::Journal;
use crate::durable::{self, StoreError};

/// The name of the file, beside the journal.
const SEAL_FILE: &str = "journal.seal";

#[derive(Serialize)]
struct JournalSeal<'a> {
    seq: u64,
    sha256: &'a Digest,
}

impl Journal {
    /// Writes the seal of the records so far.
    pub(super) fn seal(&self) -> Result<(), StoreError> {
        let path = self.log.path().with_file_name(SEAL_FILE);
        let seal = JournalSeal {
            seq: self.state.seq,
            sha256: &self.last_digest,
        };
        let text = serde_json::to_vec(&seal)
            .map_err(io::Error::from)
            .map_err(StoreError::when("write", &path))?;
        durable::write(&path, &text)
    }
}

/// Returns whether the seal beside a journal names another record with this number.
pub(super) fn contradicts_seal(journal: &Path, seq: u64, line: &[u8]) -> bool {
    // A missing or damaged seal contradicts nothing.
    let Ok(seal) = fs::read(journal.with_file_name(SEAL_FILE)) else {
        return false;
    };
    let seal: Value = serde_json::from_slice(&seal).unwrap_or(Value::Null);
    seal["seq"] == seq && seal["sha256"] != Digest::compute(line).as_str()
}

impl Drop for Journal {
    fn drop(&mut self) {
        // On failure the last seal stays in place, as after a crash. A process that lost the run
        // writes nothing.
        if self.check_owner().is_ok() {
            durable::warn_if_failed("seal the journal", self.seal());
        }
    }
}
