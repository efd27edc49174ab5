//! The file of the diagnostics log. All processes append to it; at a fixed size it is renamed to
//! `ralph.log.1`, which replaces the previous one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The size at which the file becomes `ralph.log.1` and a new one is started.
const MAX_BYTES: u64 = 8 << 20;

/// A log file that is opened with its first line.
#[derive(Debug)]
pub(super) struct LogFile {
    state_dir: PathBuf,
    path: PathBuf,
    open: Option<File>,
    max_bytes: u64,
}

impl LogFile {
    pub(super) fn new(state_dir: PathBuf, name: &str) -> Self {
        Self {
            path: state_dir.join(name),
            state_dir,
            open: None,
            max_bytes: MAX_BYTES,
        }
    }

    /// Appends a line in one write, without syncing it. Does nothing while there is no state directory:
    /// a command that only reads does not create one.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        if self.open.is_none() && !self.state_dir.is_dir() {
            return Ok(());
        }
        let length = line.len() as u64 + 1;
        let mut file = self.take_open()?;
        // Other processes append as well, so only the file knows its size.
        if file.metadata()?.len() + length > self.max_bytes {
            self.rotate(&file)?;
            file = open(&self.path)?;
        }
        let written = file.write_all(format!("{line}\n").as_bytes());
        self.open = Some(file);
        written
    }

    fn take_open(&mut self) -> io::Result<File> {
        match self.open.take() {
            Some(file) => Ok(file),
            None => open(&self.path),
        }
    }

    /// Moves the file away, unless another process has already done so.
    fn rotate(&self, file: &File) -> io::Result<()> {
        let ours = file.metadata()?;
        let current = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if (ours.dev(), ours.ino()) == (current.dev(), current.ino()) {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    // Never blocks, even if the path is not a regular file.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn log_file(state: &Path, max_bytes: u64) -> LogFile {
        LogFile {
            max_bytes,
            ..LogFile::new(state.to_owned(), "log/ralph.log")
        }
    }

    #[test]
    fn the_file_is_the_users_alone() {
        let state = tempfile::tempdir().unwrap();
        log_file(state.path(), 100).append("one").unwrap();
        let mode = |path: &str| {
            let found = fs::metadata(state.path().join(path)).unwrap();
            found.permissions().mode() & 0o777
        };
        assert_eq!((mode("log"), mode("log/ralph.log")), (0o700, 0o600));
    }

    #[test]
    fn a_missing_state_directory_is_not_created() {
        let state = tempfile::tempdir().unwrap();
        let missing = state.path().join("missing");
        log_file(&missing, 100).append("one").unwrap();
        assert!(!missing.exists());
    }

    #[test]
    fn two_processes_together_stay_below_the_limit() {
        let state = tempfile::tempdir().unwrap();
        let mut files = [log_file(state.path(), 100), log_file(state.path(), 100)];
        for number in 0..50 {
            let file = &mut files[number % 2];
            file.append(&format!("line {number:02}")).unwrap();
        }
        let read = |name: &str| fs::read_to_string(state.path().join("log").join(name)).unwrap();
        let (old, new) = (read("ralph.log.1"), read("ralph.log"));
        assert!(old.len() <= 100 && new.len() <= 100, "{old}{new}");
        assert!(new.ends_with("line 49\n"), "{new}");
        assert!(old.lines().all(|line| line.len() == 7), "{old}");
        assert_eq!(fs::read_dir(state.path().join("log")).unwrap().count(), 2);
    }

    #[test]
    fn a_removed_file_is_no_obstacle() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("log/ralph.log");
        let mut file = log_file(state.path(), 10);
        file.append("one").unwrap();
        fs::remove_file(&path).unwrap();
        // The limit is reached, so the path is opened again.
        file.append("two 67890").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two 67890\n");
    }

    #[test]
    fn anything_but_a_file_is_an_error() {
        let state = tempfile::tempdir().unwrap();
        fs::create_dir_all(state.path().join("log/ralph.log")).unwrap();
        log_file(state.path(), 100).append("one").unwrap_err();
    }
}
