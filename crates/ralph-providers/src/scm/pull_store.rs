//! The directory with the records of one repository: one writer at a time, every write durable.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph_core::ports::ScmError;

use super::record::{PullRecord, record_number};

/// Attempts to acquire the lock: half a minute in total.
const LOCK_TRIES: u32 = 3_000;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The records of one repository.
#[derive(Debug, Clone)]
pub(super) struct PullStore {
    pub(super) directory: PathBuf,
    /// The repository of all its records.
    pub(super) repo: String,
}

impl PullStore {
    /// Creates the directory if needed and locks it against other processes and tasks.
    pub(super) fn lock(&self) -> Result<LockedPullStore<'_>, ScmError> {
        create_private_directory(&self.directory)
            .and_then(|()| lock_file(&self.directory.join("lock")))
            .map(|lock| LockedPullStore {
                store: self,
                _lock: lock,
            })
            .map_err(|source| self.error("lock", source))
    }

    /// Like [`Self::lock`], but returns `None` if nothing was ever recorded.
    pub(super) fn lock_if_exists(&self) -> Result<Option<LockedPullStore<'_>>, ScmError> {
        match self.directory.try_exists() {
            Ok(true) => self.lock().map(Some),
            Ok(false) => Ok(None),
            Err(source) => Err(self.error("find", source)),
        }
    }

    fn error(&self, verb: &str, source: io::Error) -> ScmError {
        ScmError::Io {
            doing: format!("{verb} pull request records `{}`", self.directory.display()),
            source,
        }
    }
}

/// The locked directory; dropping this releases the lock.
#[derive(Debug)]
pub(super) struct LockedPullStore<'a> {
    store: &'a PullStore,
    _lock: File,
}

impl LockedPullStore<'_> {
    /// Returns the path of a record.
    pub(super) fn path(&self, number: u64) -> PathBuf {
        self.store.directory.join(format!("{number}.json"))
    }

    /// Reads every record, sorted by number.
    ///
    /// A damaged record is an error: skipping it could open the same pull request twice.
    pub(super) fn records(&self) -> Result<Vec<PullRecord>, ScmError> {
        let mut numbers = self
            .numbers()
            .map_err(|source| self.store.error("list", source))?;
        numbers.sort_unstable();
        numbers
            .into_iter()
            .map(|number| self.read(number))
            .collect()
    }

    /// Reads one record.
    pub(super) fn read(&self, number: u64) -> Result<PullRecord, ScmError> {
        let path = self.path(number);
        let record = PullRecord::read(&path)?;
        if record.repo != self.store.repo {
            return Err(ScmError::Damaged {
                path: path.display().to_string(),
                why: format!("it belongs to repository `{}`", record.repo),
            });
        }
        Ok(record)
    }

    /// Writes a record atomically: a crash leaves either the old or the new one.
    pub(super) fn write(&self, record: &PullRecord) -> Result<(), ScmError> {
        let path = self.path(record.number);
        record
            .to_bytes()
            .and_then(|bytes| write_durably(&self.store.directory, &path, &bytes))
            .map_err(|source| ScmError::Io {
                doing: format!("write pull request record `{}`", path.display()),
                source,
            })
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.store.directory)? {
            numbers.extend(record_number(&entry?.path()));
        }
        Ok(numbers)
    }
}

/// Acquires the lock within a bounded time; closing the returned file releases it.
fn lock_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)?;
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    let seconds = (LOCK_PAUSE * LOCK_TRIES).as_secs();
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("another process has held the lock for {seconds} seconds"),
    ))
}

/// Creates a directory and its missing parents, accessible only to this user.
fn create_private_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent();
    parent.map_or(Ok(()), create_private_directory)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => parent.map_or(Ok(()), sync_directory),
        // Another process created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn write_durably(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // One name is enough under the lock; the next write replaces leftovers of a killed process.
    let temporary = directory.join("next.tmp");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_directory(directory)
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
