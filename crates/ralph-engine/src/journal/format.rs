//! The journal formats that this version of ralph reads, and the errors for all others.
//!
//! A record of a newer format, an unknown event and damaged bytes are three different errors. Every
//! format has `v` in each record, `ralph` in `run_opened`, and the fields of [`RunOutline`] in the
//! plan of the first record, so that an older ralph can still list the run.

use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use crate::linked_worktrees::LinkedWorktrees;
use ralph_core::event::{JournalRecord, RECORD_VERSION};
use ralph_core::id::Digest;
use ralph_core::plan::EngineKind;
use serde::Deserialize as _;
use serde_json::Value;

use super::{JournalError, seal};

/// The version of this ralph, as recorded in journals.
pub const RALPH_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest first record that is read.
const MAX_FIRST_RECORD: u64 = 16 << 20;

/// Parses one line, or returns why this version cannot read it.
pub(super) fn parse(path: &Path, index: usize, line: &[u8]) -> Result<JournalRecord, JournalError> {
    let error = match serde_json::from_slice::<JournalRecord>(line) {
        Ok(record) if record.v <= RECORD_VERSION => return Ok(record),
        Ok(record) => return Err(newer_error(path, record.v.into())),
        Err(error) => error,
    };
    let value: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
    if let Some(format) = newer_version(&value) {
        return Err(newer_error(path, format));
    }
    let line = index + 1;
    let path = path.to_owned();
    Err(match describe_unknown(&value, &error.to_string()) {
        Some(what) => JournalError::Unknown { path, line, what },
        None => JournalError::Damaged {
            path,
            line,
            why: error.to_string(),
        },
    })
}

/// Describes the event or the value that this version does not know; none if the record is damaged.
fn describe_unknown(value: &Value, error: &str) -> Option<String> {
    let kind = value["event"]["type"].as_str()?;
    let named = ["unknown variant `", "unknown field `"]
        .iter()
        .find_map(|prefix| error.strip_prefix(prefix))?;
    let named = named.split('`').next()?;
    Some(if named == kind {
        format!("unknown event `{kind}`")
    } else {
        format!("unknown value `{named}` in event `{kind}`")
    })
}

/// Decides whether a record that cannot be read is damaged instead. The record after it, or the
/// seal for the last one, confirms its bytes; a known format never follows a newer one.
pub(super) fn classify_unreadable(
    error: JournalError,
    path: &Path,
    (index, line): (usize, &[u8]),
    next: Option<&[u8]>,
) -> JournalError {
    let next = match next.map(serde_json::from_slice::<Value>) {
        Some(Ok(next)) => Some(next),
        Some(Err(_)) | None => None,
    };
    let is_damaged = match (&error, next) {
        (JournalError::Newer { .. }, Some(next)) => newer_version(&next).is_none(),
        (JournalError::Unknown { .. }, Some(next)) => {
            next["prev"] != Digest::compute(line).as_str()
        }
        (JournalError::Newer { .. } | JournalError::Unknown { .. }, None) => {
            seal::contradicts_seal(path, index as u64 + 1, line)
        }
        (
            JournalError::Store(_)
            | JournalError::Empty { .. }
            | JournalError::Damaged { .. }
            | JournalError::Held { .. }
            | JournalError::Lost { .. },
            _,
        ) => false,
    };
    if !is_damaged {
        return error;
    }
    JournalError::Damaged {
        path: path.to_owned(),
        line: index + 1,
        why: "its digest does not match the recorded one".to_owned(),
    }
}

/// Refuses a journal whose last, torn record has a newer format, because this version cannot repair
/// it.
pub(super) fn refuse_newer_tail(path: &Path, torn: &[u8]) -> Result<(), JournalError> {
    // `v` is the first key of a record.
    let digits = torn.strip_prefix(b"{\"v\":").unwrap_or_default();
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let is_whole = length < digits.len();
    let number = std::str::from_utf8(&digits[..length]).unwrap_or("");
    match number.parse::<u64>() {
        Ok(format) if is_whole && format > u64::from(RECORD_VERSION) => {
            Err(newer_error(path, format))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn newer_version(value: &Value) -> Option<u64> {
    value["v"]
        .as_u64()
        .filter(|format| *format > u64::from(RECORD_VERSION))
}

fn newer_error(path: &Path, format: u64) -> JournalError {
    let run = path.parent().and_then(Path::file_name).unwrap_or_default();
    JournalError::Newer {
        run: run.to_string_lossy().into_owned(),
        format,
        ralph: writer_version(path),
    }
}

/// Returns the version of the newer ralph that last opened a run, if the journal records it.
fn writer_version(path: &Path) -> Option<String> {
    // Only for a message, which can do without the version.
    let Ok(bytes) = fs::read(path) else {
        return None;
    };
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    lines
        .flat_map(serde_json::from_slice::<Value>)
        .filter(|record| newer_version(record).is_some())
        .find_map(|record| record["event"]["ralph"].as_str().map(str::to_owned))
}

/// Describes the writer of a journal of a newer format, for [`JournalError::Newer`].
pub(super) fn written_by(ralph: Option<&str>, format: u64) -> String {
    match ralph {
        Some(ralph) => format!("ralph {ralph} (journal format {format})"),
        None => format!("a newer ralph (journal format {format})"),
    }
}

/// The part of the plan in the journal's first record that every version can read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOutline {
    pub task_id: Option<String>,
    pub task_file: Option<String>,
    /// The path of the user's repository, or its address on a source host.
    pub repo: Option<String>,
    /// The delivered branch.
    pub branch: Option<String>,
    pub sandbox: Option<String>,
    /// None if this version does not know it.
    pub engine: Option<EngineKind>,
}

impl RunOutline {
    /// Reads only the first record of a journal. Unreadable fields are none.
    pub fn read(journal: &Path) -> Self {
        let mut line = Vec::new();
        let file = fs::File::open(journal).map(|file| file.take(MAX_FIRST_RECORD));
        let read = file.and_then(|file| io::BufReader::new(file).read_until(b'\n', &mut line));
        let record: Value = match read {
            Ok(_) => serde_json::from_slice(&line).unwrap_or(Value::Null),
            Err(_) => Value::Null,
        };
        let plan = &record["event"]["plan"];
        let text = |key: &str| plan[key].as_str().map(str::to_owned);
        Self {
            task_id: text("task_id"),
            task_file: text("task_file"),
            repo: text("repo"),
            branch: text("branch"),
            sandbox: text("sandbox"),
            engine: Option::deserialize(&plan["engine"]).unwrap_or(None),
        }
    }

    /// Returns whether the run works on a repository, or its task file is in it. Other work trees of
    /// the repository do not count.
    pub fn is_of(&self, repository: &WorkingRepository) -> bool {
        let WorkingRepository { path, origin } = repository;
        let repo = self.repo.as_deref();
        let task = self.task_file.as_ref().map(Path::new);
        repo.map(Path::new) == Some(path)
            || (repo.is_some() && repo == origin.as_deref())
            || task.is_some_and(|file| file.starts_with(path))
    }

    /// Returns whether the run works on one of these work trees.
    pub fn is_of_any(&self, worktrees: &LinkedWorktrees) -> bool {
        let repo = self.repo.as_ref().map(Path::new);
        repo.is_some_and(|repo| worktrees.contains(repo))
    }
}

/// The repository that contains a working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingRepository {
    /// Its top level.
    pub path: PathBuf,
    /// The address of the repository on a source host that it is a clone of.
    pub origin: Option<String>,
}

#[cfg(test)]
mod tests;
