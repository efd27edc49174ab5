//! Writes files so that a crash at any moment leaves either the old content or the new.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ralph_core::event::LogPosition;
use ralph_core::id::Digest;
use sha2::{Digest as _, Sha256};

/// The error number of an input/output error.
const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

/// The hint for a full disk.
pub(crate) const DISK_FULL_HINT: &str =
    "free some space and run `ralph resume`; nothing that was recorded is lost";

/// A file operation of the state directory that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} `{}`: {source}", path.display())]
pub struct StoreError {
    /// The operation, as a verb.
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl StoreError {
    /// Returns a closure for `map_err` that adds the operation and the path.
    pub fn when(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            doing,
            path,
            source,
        }
    }

    /// Returns the hint for the user.
    pub fn hint(&self) -> &'static str {
        use io::ErrorKind as K;
        let kind = self.source.kind();
        if matches!(kind, K::StorageFull | K::QuotaExceeded) {
            DISK_FULL_HINT
        } else if matches!(kind, K::PermissionDenied | K::ReadOnlyFilesystem) {
            "make the directory writable, or set `RALPH_HOME` to a writable one"
        } else if self.source.raw_os_error() == Some(EIO) {
            "the disk reports an error: check the system log and the disk, then run `ralph resume`"
        } else if matches!(kind, K::AlreadyExists | K::NotADirectory) {
            "move the existing entry away, or set `RALPH_HOME` to another directory"
        } else {
            "check the path, then try again"
        }
    }
}

/// Creates a directory and its parents, accessible only to the user. New ones survive a power cut.
pub fn create_dir(path: &Path) -> Result<(), StoreError> {
    create_dir_chain(path).map_err(StoreError::when("create", path))
}

fn create_dir_chain(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.map_or(Ok(()), create_dir_chain)?;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        // Another process created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) => return Err(error),
    }
    let synced = parent.map_or(Ok(()), |parent| File::open(parent)?.sync_all());
    match synced {
        // A directory that may be written but not read cannot be synced; that is the user's choice.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Reads a file; none if it does not exist.
pub fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::when("read", path)(error)),
    }
}

/// Removes a directory with everything in it. A missing one is not an error.
pub fn remove_tree(path: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::when("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a file that is no longer needed, if it exists. A failure is only logged.
pub fn remove_leftover(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove `{}`: {error}", path.display());
        }
        Ok(()) | Err(_) => {}
    }
}

/// Logs the error of an operation whose failure does not change the course of a run.
pub(crate) fn warn_if_failed<T, E: std::fmt::Display>(doing: &str, result: Result<T, E>) {
    if let Err(error) = result {
        tracing::warn!("cannot {doing}: {error}");
    }
}

/// Writes a file that is complete and on disk when this returns. Only one process may write it at a
/// time.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    replace(path, &temporary_name(path, ""), bytes)
}

/// Writes a file like [`write()`] that several processes may write at the same time: the last one
/// wins.
pub fn write_shared(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = temporary_name(path, &format!(".{:016x}-{count}", *PROCESS));
    let replaced = replace(path, &temporary, bytes);
    if replaced.is_err() {
        // Its name is unique, so no later write replaces it.
        remove_leftover(&temporary);
    }
    replaced
}

fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let file = write_unsynced(temporary, bytes)?;
    file.sync_all()
        .map_err(StoreError::when("sync", temporary))?;
    rename(temporary, path)
}

/// Renames a file or directory in its directory, and syncs the directory.
pub fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::when("rename", from))?;
    to.parent().map_or(Ok(()), sync_dir)
}

/// Syncs a directory, so that renames and new entries survive a power cut.
pub fn sync_dir(path: &Path) -> Result<(), StoreError> {
    sync_path(path)
}

fn sync_path(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::when("sync", path))
}

/// Syncs the whole filesystem of a path: files, renames and new entries, whichever program wrote
/// them. Git syncs its files, but no directory; see `docs/design/0019`.
pub fn sync_filesystem(path: &Path) -> Result<(), StoreError> {
    let sync = || -> io::Result<()> {
        let file = File::open(path)?;
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&file)?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
        drop(file);
        Ok(())
    };
    sync().map_err(StoreError::when("sync the filesystem of", path))
}

/// Syncs files and directories in parallel, so that the disk flushes once for all of them.
pub fn sync_paths(paths: &[PathBuf]) -> Result<(), StoreError> {
    thread::scope(|scope| {
        let started: Vec<_> = paths
            .iter()
            .map(|path| {
                let thread = thread::Builder::new().spawn_scoped(scope, || sync_path(path));
                (path, thread)
            })
            .collect();
        started.into_iter().try_for_each(|(path, thread)| {
            match thread.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(synced)) => synced,
                // The thread could not be started, or panicked.
                Ok(Err(_)) | Err(_) => sync_path(path),
            }
        })
    })
}

/// Writes a file without a sync; it survives a crash of the program, but not of the machine.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<File, StoreError> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(StoreError::when("create", path))?;
    file.write_all(bytes)
        .map_err(StoreError::when("write", path))?;
    Ok(file)
}

/// Whether an append must be on disk before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// The append syncs the file.
    Now,
    /// A later sync covers it.
    Later,
}

/// An append-only file.
#[derive(Debug)]
pub struct AppendLog {
    path: PathBuf,
    file: File,
    length: u64,
    hasher: Sha256,
    /// The error number of a failed sync. The content on disk is unknown from then on, so nothing
    /// more is appended.
    broken: Option<i32>,
}

impl AppendLog {
    /// Opens a log, and creates it if it does not exist.
    pub fn open(path: PathBuf) -> Result<Self, StoreError> {
        let is_new = !path.exists();
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))?;
        if is_new {
            path.parent().map_or(Ok(()), sync_dir)?;
        }
        let (length, hasher) = hash_file(&path).map_err(StoreError::when("read", &path))?;
        Ok(Self {
            path,
            file,
            length,
            hasher,
            broken: None,
        })
    }

    /// Appends bytes with one write. After a failure the file has its former length.
    ///
    /// A failed sync is final: the kernel reports it once and then forgets it, so a second sync
    /// that succeeds proves nothing. Every later call fails, too.
    pub fn append(&mut self, bytes: &[u8], sync: SyncMode) -> Result<(), StoreError> {
        self.check_usable("append to")?;
        let written = self.file.write_all(bytes);
        let synced = written.and_then(|()| match sync {
            SyncMode::Now => self.sync_data(),
            SyncMode::Later => Ok(()),
        });
        if let Err(source) = synced {
            // A partial record would damage the next one, so truncate it.
            self.file
                .set_len(self.length)
                .map_err(StoreError::when("repair", &self.path))?;
            return Err(StoreError::when("append to", &self.path)(source));
        }
        self.length += bytes.len() as u64;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Waits until everything is on disk. A failure is final, also for later appends.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.check_usable("sync")?;
        self.sync_data()
            .map_err(StoreError::when("sync", &self.path))
    }

    /// Fails if an earlier sync has failed.
    fn check_usable(&self, doing: &'static str) -> Result<(), StoreError> {
        self.broken.map_or(Ok(()), |number| {
            let source = io::Error::from_raw_os_error(number);
            Err(StoreError::when(doing, &self.path)(source))
        })
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.file
            .sync_data()
            .inspect_err(|error| self.broken = error.raw_os_error().or(Some(EIO)))
    }

    /// Returns its length and digest; the cost does not depend on its size.
    pub fn mark(&self) -> LogPosition {
        LogPosition {
            bytes: self.length,
            sha256: Digest::from_sha256(&self.hasher.clone().finalize()),
        }
    }

    /// Returns the number of bytes in it.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns length and digest of a whole file.
pub fn mark(path: &Path) -> Result<LogPosition, StoreError> {
    let (bytes, hasher) = hash_file(path).map_err(StoreError::when("read", path))?;
    let sha256 = Digest::from_sha256(&hasher.finalize());
    Ok(LogPosition { bytes, sha256 })
}

fn hash_file(path: &Path) -> io::Result<(u64, Sha256)> {
    use std::io::Read as _;
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((length, hasher));
        }
        hasher.update(&buffer[..read]);
        length += read as u64;
    }
}

/// Returns the last bytes of a file, from the start of a line; empty if the file does not exist.
/// The cost does not depend on its size.
pub fn tail(path: &Path, max_bytes: u64) -> Result<String, StoreError> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(max_bytes);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(max_bytes).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let whole_lines = if from == 0 {
            0
        } else {
            text.find('\n').map_or(0, |end| end + 1)
        };
        Ok(text[whole_lines..].to_owned())
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(StoreError::when("read", path)),
    }
}

fn temporary_name(path: &Path, writer: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{writer}.tmp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_replaces_the_whole_file_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write(&path, b"a much longer first version").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn concurrent_writes_of_one_file_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shared");
        thread::scope(|scope| {
            for letter in b'a'..=b'h' {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_shared(path, &[letter; 4096]).unwrap();
                    }
                });
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes, [bytes[0]; 4096]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_first_sync_failure_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let (file, missing) = (dir.path().join("file"), dir.path().join("missing"));
        write_unsynced(&file, b"text").unwrap();
        sync_paths(&[file.clone(), dir.path().to_owned()]).unwrap();
        let error = sync_paths(&[file, missing.clone()]).unwrap_err();
        assert_eq!((error.doing, error.path), ("sync", missing));
    }

    #[test]
    fn a_tail_starts_at_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(tail(&path, 10).unwrap(), "");
        let mut log = AppendLog::open(path.clone()).unwrap();
        log.append(b"one\ntwo\nthree\n", SyncMode::Now).unwrap();
        assert_eq!(tail(&path, 100).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(tail(&path, 8).unwrap(), "three\n");
        assert_eq!(log.length(), 14);
    }

    #[test]
    fn a_failed_sync_is_final() {
        // A device does not support a sync.
        let mut log = AppendLog::open("/dev/null".into()).unwrap();
        let failure = |error: StoreError| (error.doing, error.source.raw_os_error());
        let invalid = Some(rustix::io::Errno::INVAL.raw_os_error());
        assert_eq!(failure(log.sync().unwrap_err()), ("sync", invalid));
        let appended = log.append(b"line\n", SyncMode::Later);
        assert_eq!(failure(appended.unwrap_err()), ("append to", invalid));
        assert_eq!(failure(log.sync().unwrap_err()), ("sync", invalid));
        assert_eq!(log.length(), 0);
    }

    #[test]
    fn an_error_names_the_file_and_a_hint() {
        let error = write(Path::new("/proc/nothing/x"), b"").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot create `/proc/nothing/.x.tmp`: No such file or directory (os error 2)"
        );
        let full = StoreError {
            doing: "write",
            path: "/x".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(full.hint().contains("free some space"));
    }
}
