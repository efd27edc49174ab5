//! Ends a command that fills the sandbox's disk.
//!
//! A volume has no quota of its own. How much the whole file system holds is asked often, which
//! costs nothing; only when it grew so much that the sandbox could be over its limit, the sandbox
//! itself is measured.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use rustix::fs::statvfs;

use crate::command::{Ended, never};

/// How often the file system is asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// After so many times the directory is measured in any case.
const MEASURE_AFTER: u32 = 30;
/// After so many files others get their turn.
const FILES_AT_ONCE: usize = 256;

/// A directory that may hold only so much.
#[derive(Debug)]
pub(super) struct Disk {
    root: PathBuf,
    limit: Option<u64>,
    last: Mutex<Option<Measured>>,
}

/// How much the directory held when the whole file system held so much.
#[derive(Debug, Clone, Copy)]
struct Measured {
    inside: u64,
    everywhere: u64,
}

impl Disk {
    pub(super) fn new(root: &Path, limit: Option<u64>) -> Self {
        Self {
            root: root.to_owned(),
            limit,
            last: Mutex::new(None),
        }
    }

    /// Waits until the directory holds more than it may. One that held more already may not grow:
    /// so a command can still make room.
    pub(super) async fn over(&self) -> Ended {
        let Some(limit) = self.limit else {
            return never().await;
        };
        let was_over = self.last().is_some_and(|last| last.inside > limit);
        let before = if was_over {
            self.measure().await
        } else {
            Ok(0)
        };
        let allowed = limit.max(before.unwrap_or(0));
        for turn in 1_u32.. {
            tokio::time::sleep(INTERVAL).await;
            // Others may free at the same time what is taken here, so it is measured now and then.
            let is_due = turn.is_multiple_of(MEASURE_AFTER) || self.at_least_now() > allowed;
            // A file system that cannot be asked is none that fills up.
            if is_due && self.measure().await.unwrap_or(0) > allowed {
                return Ended::DiskLimit;
            }
        }
        never().await
    }

    fn last(&self) -> Option<Measured> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how much the directory holds if everything that grew is in it.
    fn at_least_now(&self) -> u64 {
        match (self.last(), held(&self.root)) {
            (Some(last), Ok(now)) => last.inside + now.saturating_sub(last.everywhere),
            (None, _) | (_, Err(_)) => u64::MAX,
        }
    }

    async fn measure(&self) -> io::Result<u64> {
        let everywhere = held(&self.root)?;
        let inside = size(&self.root).await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Measured { inside, everywhere });
        Ok(inside)
    }
}

/// Returns how many bytes of a file system are taken.
fn held(path: &Path) -> io::Result<u64> {
    let told = statvfs(path)?;
    Ok((told.f_blocks - told.f_bfree) * told.f_frsize)
}

/// Adds up what a directory takes on disk.
async fn size(root: &Path) -> io::Result<u64> {
    let device = fs::symlink_metadata(root)?.dev();
    let mut waiting = vec![root.to_owned()];
    let (mut total, mut seen) = (0, 0);
    while let Some(directory) = waiting.pop() {
        // What disappears meanwhile takes nothing.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            total += metadata.blocks() * 512;
            if metadata.is_dir() && metadata.dev() == device {
                waiting.push(entry.path());
            }
            seen += 1;
            if seen % FILES_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_directory_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), vec![1; 300_000]).unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        let held = size(dir.path()).await.unwrap();
        assert!((300_000..400_000).contains(&held), "{held}");
        let full = Disk::new(dir.path(), Some(200_000));
        assert_eq!(full.over().await, Ended::DiskLimit);
        // What is known to be full may be emptied, but not filled further.
        let waited = tokio::time::timeout(INTERVAL * 3, full.over()).await;
        assert!(waited.is_err(), "{waited:?}");
        let grows = async {
            tokio::time::sleep(INTERVAL / 2).await;
            fs::write(dir.path().join("more"), vec![1; 100_000]).unwrap();
        };
        let (ended, ()) = tokio::join!(full.over(), grows);
        assert_eq!(ended, Ended::DiskLimit);
        let roomy = Disk::new(dir.path(), Some(10_000_000));
        let waited = tokio::time::timeout(INTERVAL * 3, roomy.over()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
}
