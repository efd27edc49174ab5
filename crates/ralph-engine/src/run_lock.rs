//! The lock of a run: decides which process may write to its journal.
//!
//! Two files are locked with `flock`: `lock`, which exists before the journal, and the journal
//! itself. A lock belongs to an open file, not to its name. A process that removes the file `lock`
//! therefore does not get the run while its owner lives: the journal is still locked. The owner in
//! turn compares the journal with its own writes before each record, so that it does not write to a
//! file that was replaced.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::durable::StoreError;
use crate::store::RunDir;

/// The most attempts to lock: a process that checks whether a run is locked holds the lock for a
/// moment.
const LOCK_ATTEMPTS: usize = 10;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The right to write to a run; released on drop and when the process dies.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
    path: PathBuf,
    /// The journal; none until it is created.
    journal: Option<File>,
}

/// The end of a journal as written by its owner.
#[derive(Debug)]
pub(crate) struct JournalEnd {
    length: u64,
    bytes: Vec<u8>,
}

impl JournalEnd {
    /// The number of compared bytes: a record ends with its event, which follows the hash of the
    /// previous record.
    const COMPARED_BYTES: usize = 1024;

    /// Records that `text` was appended and that the file has this length now.
    pub(crate) fn append(&mut self, text: &[u8], length: u64) {
        self.bytes.extend_from_slice(text);
        let over = self.bytes.len().saturating_sub(Self::COMPARED_BYTES);
        self.bytes.drain(..over);
        self.length = length;
    }
}

impl RunDir {
    fn lock_path(&self) -> PathBuf {
        self.root().join("lock")
    }

    fn lock_file(&self) -> Result<File, StoreError> {
        let path = self.lock_path();
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))
    }

    /// Locks the run for this process; none if another process owns it.
    pub fn lock(&self) -> Result<Option<RunLock>, StoreError> {
        for _ in 0..LOCK_ATTEMPTS {
            if let Some(lock) = self.try_lock()? {
                return Ok(Some(lock));
            }
            std::thread::sleep(LOCK_RETRY_DELAY);
        }
        Ok(None)
    }

    fn try_lock(&self) -> Result<Option<RunLock>, StoreError> {
        let file = self.lock_file()?;
        if !try_flock(&file) || !is_same_file(&file, &self.lock_path()) {
            return Ok(None);
        }
        let mut lock = RunLock {
            _file: file,
            path: self.journal(),
            journal: None,
        };
        let is_held = lock.path.exists() && !lock.try_lock_journal()?;
        Ok((!is_held).then_some(lock))
    }

    /// Returns whether a process owns the run.
    pub fn is_held(&self) -> bool {
        let is_locked = |file: File| {
            let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
            locked == Err(Errno::WOULDBLOCK)
        };
        self.lock_file().is_ok_and(is_locked) || File::open(self.journal()).is_ok_and(is_locked)
    }
}

impl RunLock {
    /// Also locks the journal, once it exists; false if another process has locked it.
    pub(crate) fn lock_journal(&mut self) -> Result<bool, StoreError> {
        for _ in 0..LOCK_ATTEMPTS {
            if self.try_lock_journal()? {
                return Ok(true);
            }
            std::thread::sleep(LOCK_RETRY_DELAY);
        }
        Ok(false)
    }

    fn try_lock_journal(&mut self) -> Result<bool, StoreError> {
        let journal = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&self.path)
            .map_err(StoreError::when("open", &self.path))?;
        if !try_flock(&journal) || !is_same_file(&journal, &self.path) {
            return Ok(false);
        }
        self.journal = Some(journal);
        Ok(true)
    }

    /// Returns the current end of the journal.
    pub(crate) fn journal_end(&self, length: u64) -> Result<JournalEnd, StoreError> {
        let compared = usize::try_from(length).map_or(JournalEnd::COMPARED_BYTES, |length| {
            length.min(JournalEnd::COMPARED_BYTES)
        });
        let mut bytes = vec![0; compared];
        let read = self.journal.as_ref().map_or(Ok(()), |journal| {
            journal.read_exact_at(&mut bytes, length - compared as u64)
        });
        read.map_err(StoreError::when("read", &self.path))?;
        Ok(JournalEnd { length, bytes })
    }

    /// Returns whether the journal's path still names the locked file, and the file ends as this
    /// process wrote it.
    pub(crate) fn is_intact(&self, end: &JournalEnd) -> bool {
        let Some(journal) = &self.journal else {
            return false;
        };
        let has_length = journal
            .metadata()
            .is_ok_and(|metadata| metadata.len() == end.length);
        has_length && is_same_file(journal, &self.path) && ends_with(journal, end).unwrap_or(false)
    }
}

fn ends_with(file: &File, end: &JournalEnd) -> io::Result<bool> {
    let mut bytes = vec![0; end.bytes.len()];
    file.read_exact_at(&mut bytes, end.length - end.bytes.len() as u64)?;
    Ok(bytes == end.bytes)
}

/// Locks a file unless another process has locked it.
pub(crate) fn try_flock(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Returns whether a path names this open file.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}
