//! The lock of the state directory: one server at a time works with it.
//!
//! The directory itself is locked with `flock`, which ends with the process. `server.lock` names the
//! owner with its start time and the boot of its machine, for the message and for file systems without
//! `flock`. A server takes over only from an owner that is known to have ended.

use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::ports::Clock;
use ralph_engine::durable::{self, StoreError};
use ralph_providers::owner_process::OwnerProcess;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::AppError;

/// The name of the file that names the owner.
const LOCK_FILE: &str = "server.lock";

/// The server of a state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOwner {
    #[serde(flatten)]
    process: OwnerProcess,
    pub since: Timestamp,
}

/// The right to be the server of a state directory; released on drop and when the process ends.
#[derive(Debug)]
pub struct StateLock {
    _directory: File,
    path: PathBuf,
}

impl LockOwner {
    /// Returns the server of a state directory that is not known to have ended.
    pub fn find(root: &Path) -> Result<Option<Self>, StoreError> {
        let path = root.join(LOCK_FILE);
        let Some(bytes) = durable::read_if_present(&path)? else {
            return Ok(None);
        };
        let owner: Self = serde_json::from_slice(&bytes)
            .map_err(std::io::Error::from)
            .map_err(StoreError::when("parse", &path))?;
        Ok((!owner.process.is_dead()).then_some(owner))
    }

    /// Returns the process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn is_this_process(&self) -> bool {
        self.process == OwnerProcess::current()
    }
}

impl StateLock {
    /// Locks a state directory. Changes no file if another server has it.
    pub fn acquire(root: &Path, clock: &dyn Clock) -> Result<Self, AppError> {
        let directory = File::open(root).map_err(StoreError::when("open", root))?;
        let locked = rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive);
        // An unreadable record belongs to a server only if the directory is locked.
        let owner = LockOwner::find(root).unwrap_or_else(|error| {
            tracing::warn!(%error, "the owner of the state directory is unknown");
            None
        });
        let other = owner.filter(|owner| !owner.is_this_process());
        if locked == Err(Errno::WOULDBLOCK) || other.is_some() {
            return Err(in_use(root, other.as_ref()));
        }
        if let Err(error) = locked {
            tracing::debug!(%error, "the file system of the state directory has no locks");
        }
        let lock = Self {
            _directory: directory,
            path: root.join(LOCK_FILE),
        };
        let owner = LockOwner {
            process: OwnerProcess::current(),
            since: clock.now(),
        };
        let text = serde_json::to_vec(&owner)
            .map_err(std::io::Error::from)
            .map_err(StoreError::when("write", &lock.path))?;
        durable::write(&lock.path, &text)?;
        Ok(lock)
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        durable::remove_leftover(&self.path);
    }
}

fn in_use(root: &Path, owner: Option<&LockOwner>) -> AppError {
    let what = match owner {
        Some(owner) => {
            let since = owner.since.strftime("%Y-%m-%d %H:%M:%S UTC");
            format!(
                "state directory in use by pid {} since {since}",
                owner.pid()
            )
        }
        None => "state directory in use by another server".to_owned(),
    };
    AppError::runtime(
        what,
        format!("`{}` has one server at a time", root.display()),
        "use that server or end it, or set RALPH_HOME to another directory",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_state_directory_has_one_server_and_a_dead_one_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let acquire = || StateLock::acquire(root.path(), &SystemClock::new());
        let first = acquire().unwrap();
        let text = fs::read(root.path().join(LOCK_FILE)).unwrap();
        let error = acquire().unwrap_err();
        assert_eq!(error.what, "state directory in use by another server");
        assert_eq!(fs::read(root.path().join(LOCK_FILE)).unwrap(), text);
        drop(first);
        assert!(!root.path().join(LOCK_FILE).exists());

        // A process that lives, on a file system without locks.
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let owner = LockOwner {
            process: OwnerProcess::with_pid(child.id()),
            since: Timestamp::UNIX_EPOCH,
        };
        let record = serde_json::to_vec(&owner).unwrap();
        fs::write(root.path().join(LOCK_FILE), &record).unwrap();
        let error = acquire().unwrap_err();
        let pid = child.id();
        let expected = format!("state directory in use by pid {pid} since 1970-01-01 00:00:00 UTC");
        assert_eq!(error.what, expected);
        assert_eq!(fs::read(root.path().join(LOCK_FILE)).unwrap(), record);
        assert_eq!(LockOwner::find(root.path()).unwrap().unwrap().pid(), pid);

        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(LockOwner::find(root.path()).unwrap(), None);
        acquire().unwrap();
    }
}
