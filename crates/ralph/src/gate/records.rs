//! One line for each thing that the gate decided, in a file of the run.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ralph_core::secret::Redactor;
use ralph_gate::Audit;
use serde::Serialize;

/// The most that is written: a sandbox can ask as often as it likes.
const MOST_BYTES: u64 = 64 << 20;

/// The file of a run that has a line in JSON for each decision. It is made with its first line.
pub struct Records {
    path: PathBuf,
    redactor: Redactor,
    open: Mutex<Option<Open>>,
}

/// A line.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    record: &'a Audit,
    /// What ran in the sandbox when it ended, if anybody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
}

struct Open {
    file: File,
    bytes: u64,
}

impl Open {
    /// Opens the file, or makes it; only its owner can read it.
    fn at(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }
}

impl Records {
    /// Writes to a file.
    pub fn at(path: PathBuf, redactor: Redactor) -> Self {
        Self {
            path,
            redactor,
            open: Mutex::default(),
        }
    }

    /// Adds a line. When the file is full, what is more is left out.
    pub(super) fn add(&self, record: &Audit, command: Option<&str>) {
        // The connection that it tells about has ended; nothing can be taken back any more.
        self.write(&Record { record, command }).ok();
    }

    fn write(&self, record: &Record<'_>) -> io::Result<()> {
        let line = serde_json::to_string(record)?;
        let line = format!("{}\n", self.redactor.redact(&line));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = Some(Open::at(&self.path)?);
        }
        let Some(open) = open.as_mut() else {
            return Ok(());
        };
        if open.bytes + line.len() as u64 > MOST_BYTES {
            return Ok(());
        }
        open.bytes += line.len() as u64;
        open.file.write_all(line.as_bytes())
    }
}
