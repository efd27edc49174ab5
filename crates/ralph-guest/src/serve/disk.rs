//! Ends a command that fills the sandbox's disk.
//!
//! A volume has no quota of its own. How much the whole file system holds is asked often, which
//! costs nothing; only when it grew so much that the sandbox could be over its limit, the sandbox
//! itself is measured: its files, and those without a name that its processes hold open.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use rustix::fs::statvfs;

use super::unlinked::{OpenFiles, Unlinked};
use super::usage::{Tree, Usage};
use crate::command::{Ended, never};

/// How often the file system is asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// After so many times the sandbox is measured in any case.
const MEASURE_AFTER: u32 = 30;
/// How many bytes there are for each file, on a small disk and on a larger one: as many as on an ext4
/// file system of that size. Files without content take no space, but the file system runs out of them.
const BYTES_PER_FILE: (u64, u64) = (4 << 10, 16 << 10);
const SMALL_DISK: u64 = 512 << 20;

/// Directory trees that may hold only so much together.
#[derive(Debug)]
pub(super) struct Disk {
    trees: Vec<Tree>,
    limit: Option<Usage>,
    open_files: Option<OpenFiles>,
    last: Mutex<Option<Measured>>,
}

/// How much the sandbox held when its file systems held so much.
#[derive(Debug, Clone, Copy)]
struct Measured {
    inside: Usage,
    everywhere: Usage,
}

impl Disk {
    /// Limits what trees and open files hold, in bytes.
    pub(super) fn new(trees: Vec<Tree>, bytes: Option<u64>, open_files: Option<OpenFiles>) -> Self {
        Self {
            trees,
            limit: bytes.map(limit),
            open_files,
            last: Mutex::new(None),
        }
    }

    /// Waits until the sandbox holds more than it may. One that held more already may not grow: so a
    /// command can still make room.
    pub(super) async fn over(&self) -> Ended {
        let Some(limit) = self.limit else {
            return never().await;
        };
        let start = self.start().await;
        let was_over = start.inside.is_some_and(|inside| inside.exceeds(limit));
        let allowed = match start.inside {
            Some(inside) if was_over => limit.max(inside),
            Some(_) | None => limit,
        };
        for turn in 1_u32.. {
            tokio::time::sleep(INTERVAL).await;
            // Others may free at the same time what is taken here, so it is measured now and then.
            let is_due = turn.is_multiple_of(MEASURE_AFTER) || self.at_least_now().exceeds(allowed);
            if is_due && self.measure(start).await.exceeds(allowed) {
                return Ended::DiskLimit;
            }
        }
        never().await
    }

    /// Says what the last measurement found to be too much.
    pub(super) fn complaint(&self) -> Option<String> {
        let (limit, inside) = (self.limit?, self.last()?.inside);
        if inside == UNMEASURABLE {
            return Some(
                "ralph: the sandbox's disk is full: its directories are too deep to be measured\n"
                    .into(),
            );
        }
        Some(if inside.files > limit.files {
            let (files, most) = (inside.files, limit.files);
            format!(
                "ralph: the sandbox's disk is full: {files} files, at most {most} are allowed\n"
            )
        } else {
            let (bytes, most) = (inside.bytes >> 20, limit.bytes >> 20);
            format!(
                "ralph: the sandbox's disk is full: {bytes} MiB, at most {most} MiB are allowed\n"
            )
        })
    }

    fn last(&self) -> Option<Measured> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where a command begins. A sandbox that was over its limit is measured again.
    async fn start(&self) -> Start {
        let limit = self.limit.unwrap_or_default();
        let everywhere = self.everywhere().unwrap_or_default();
        let inside = match self.last() {
            Some(last) if last.inside.exceeds(limit) => {
                let start = Start {
                    inside: None,
                    everywhere,
                };
                Some(self.measure(start).await)
            }
            last => last.map(|last| last.inside),
        };
        Start { inside, everywhere }
    }

    /// Returns how much the sandbox holds if everything that grew is in it.
    fn at_least_now(&self) -> Usage {
        match (self.last(), self.everywhere()) {
            (Some(last), Ok(now)) => last.inside + now.since(last.everywhere),
            (None, _) | (_, Err(_)) => UNMEASURABLE,
        }
    }

    async fn measure(&self, start: Start) -> Usage {
        let everywhere = self.everywhere().unwrap_or_default();
        let inside = match self.inside(start, everywhere).await {
            Ok(inside) => inside,
            Err(_) => UNMEASURABLE,
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Measured { inside, everywhere });
        inside
    }

    async fn inside(&self, start: Start, everywhere: Usage) -> io::Result<Usage> {
        let mut named = Usage::default();
        for tree in &self.trees {
            named += tree.usage().await?;
        }
        let Unlinked { usage, hidden } = match self.open_files {
            Some(open_files) => open_files.unlinked().await,
            None => Unlinked::default(),
        };
        if !hidden {
            return Ok(named + usage);
        }
        // A process hides what it holds: what the file systems grew by since the command began, and
        // no file explains, is taken to be that.
        let grown = everywhere.since(start.everywhere);
        let explained = named.since(start.inside.unwrap_or_default());
        let unexplained = Usage {
            files: 0,
            ..grown.since(explained)
        };
        Ok(named + usage.max(unexplained))
    }

    /// Returns how much of the file systems is taken.
    fn everywhere(&self) -> io::Result<Usage> {
        let mut total = Usage::default();
        for tree in &self.trees {
            total += taken(&tree.root)?;
        }
        Ok(total)
    }
}

/// How things were when a command began.
#[derive(Debug, Clone, Copy)]
struct Start {
    inside: Option<Usage>,
    everywhere: Usage,
}

/// A tree that cannot be measured is more than any limit allows.
const UNMEASURABLE: Usage = Usage {
    bytes: u64::MAX,
    files: u64::MAX,
};

/// Returns the limit of a disk of some size.
fn limit(bytes: u64) -> Usage {
    let (small, large) = BYTES_PER_FILE;
    let per_file = if bytes < SMALL_DISK { small } else { large };
    Usage {
        bytes,
        files: bytes / per_file,
    }
}

/// Returns how much of a file system is taken.
fn taken(path: &Path) -> io::Result<Usage> {
    let found = statvfs(path)?;
    Ok(Usage {
        bytes: (found.f_blocks - found.f_bfree) * found.f_frsize,
        files: found.f_files.saturating_sub(found.f_ffree),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn disk(root: &Path, bytes: u64) -> Disk {
        Disk::new(vec![Tree::whole(root)], Some(bytes), None)
    }

    #[tokio::test]
    async fn a_full_directory_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), vec![1; 300_000]).unwrap();
        let full = disk(dir.path(), 200_000);
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
        let roomy = disk(dir.path(), 10_000_000);
        let waited = tokio::time::timeout(INTERVAL * 3, roomy.over()).await;
        assert!(waited.is_err(), "{waited:?}");
    }

    #[tokio::test]
    async fn files_without_content_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..300 {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let full = disk(dir.path(), 1 << 20);
        assert_eq!(full.over().await, Ended::DiskLimit);
        let complaint = full.complaint().unwrap();
        assert!(
            complaint.contains("300 files, at most 256 are allowed"),
            "{complaint}"
        );
    }
}
