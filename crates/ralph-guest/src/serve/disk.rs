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

use super::unlinked::{OpenFiles, UnlinkedFiles};
use super::usage::{DiskUsage, MeasuredTree};
use crate::available;
use crate::command::{CommandEnd, no_watchdog};

/// How often the file system is asked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After so many times the sandbox is measured in any case.
const MEASURE_EVERY: u32 = 30;
/// How many bytes there are for each file, on a small disk and on a larger one: as many as on an ext4
/// file system of that size. Files without content take no space, but the file system runs out of them.
const BYTES_PER_FILE: (u64, u64) = (4 << 10, 16 << 10);
const SMALL_DISK: u64 = 512 << 20;

/// Directory trees that may hold only so much together.
#[derive(Debug)]
pub(super) struct DiskQuota {
    trees: Vec<MeasuredTree>,
    limit: Option<DiskUsage>,
    open_files: Option<OpenFiles>,
    last: Mutex<Option<DiskMeasurement>>,
}

/// How much the sandbox held when its file systems held so much.
#[derive(Debug, Clone, Copy)]
struct DiskMeasurement {
    sandbox: DiskUsage,
    filesystem: DiskUsage,
}

impl DiskQuota {
    /// Limits what trees and open files hold, in bytes.
    pub(super) fn new(
        trees: Vec<MeasuredTree>,
        bytes: Option<u64>,
        open_files: Option<OpenFiles>,
    ) -> Self {
        Self {
            trees,
            limit: bytes.map(usage_limit),
            open_files,
            last: Mutex::new(None),
        }
    }

    /// Waits until the sandbox holds more than it may. One that held more already may not grow: so a
    /// command can still make room.
    pub(super) async fn wait_until_exceeded(&self) -> CommandEnd {
        let Some(limit) = self.limit else {
            return no_watchdog().await;
        };
        let start = self.baseline().await;
        let was_over = start.sandbox.is_some_and(|inside| inside.exceeds(limit));
        let allowed = match start.sandbox {
            Some(inside) if was_over => limit.max(inside),
            Some(_) | None => limit,
        };
        for turn in 1_u32.. {
            tokio::time::sleep(POLL_INTERVAL).await;
            // Others may free at the same time what is taken here, so it is measured now and then.
            let is_due = turn.is_multiple_of(MEASURE_EVERY) || self.upper_bound().exceeds(allowed);
            if is_due && self.measure(start).await.exceeds(allowed) {
                return CommandEnd::DiskLimit;
            }
        }
        no_watchdog().await
    }

    /// Says what the last measurement found to be too much.
    pub(super) fn limit_message(&self) -> Option<String> {
        let (limit, inside) = (self.limit?, self.last_measurement()?.sandbox);
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

    fn last_measurement(&self) -> Option<DiskMeasurement> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where a command begins. A sandbox that was over its limit is measured again.
    async fn baseline(&self) -> DiskBaseline {
        let limit = self.limit.unwrap_or_default();
        let everywhere = self.filesystem_usage_or_none();
        let inside = match self.last_measurement() {
            Some(last) if last.sandbox.exceeds(limit) => {
                let start = DiskBaseline {
                    sandbox: None,
                    filesystem: everywhere,
                };
                Some(self.measure(start).await)
            }
            last => last.map(|last| last.sandbox),
        };
        DiskBaseline {
            sandbox: inside,
            filesystem: everywhere,
        }
    }

    /// Returns how much the sandbox holds if everything that grew is in it.
    fn upper_bound(&self) -> DiskUsage {
        match (self.last_measurement(), self.filesystem_usage()) {
            (Some(last), Ok(now)) => last.sandbox + now.growth_since(last.filesystem),
            (None, _) | (_, Err(_)) => UNMEASURABLE,
        }
    }

    async fn measure(&self, start: DiskBaseline) -> DiskUsage {
        let everywhere = self.filesystem_usage_or_none();
        let inside = match self.sandbox_usage(start, everywhere).await {
            Ok(inside) => inside,
            Err(_) => UNMEASURABLE,
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(DiskMeasurement {
            sandbox: inside,
            filesystem: everywhere,
        });
        inside
    }

    async fn sandbox_usage(
        &self,
        start: DiskBaseline,
        everywhere: DiskUsage,
    ) -> io::Result<DiskUsage> {
        let mut named = DiskUsage::default();
        for tree in &self.trees {
            named += tree.usage().await?;
        }
        let UnlinkedFiles {
            usage,
            is_incomplete: hidden,
        } = match self.open_files {
            Some(open_files) => open_files.unlinked().await,
            None => UnlinkedFiles::default(),
        };
        if !hidden {
            return Ok(named + usage);
        }
        // A process hides what it holds: what the file systems grew by since the command began, and
        // no file explains, is taken to be that.
        let grown = everywhere.growth_since(start.filesystem);
        let explained = named.growth_since(start.sandbox.unwrap_or_default());
        let unexplained = DiskUsage {
            files: 0,
            ..grown.growth_since(explained)
        };
        Ok(named + usage.max(unexplained))
    }

    /// Returns how much of the file systems is taken.
    fn filesystem_usage(&self) -> io::Result<DiskUsage> {
        let mut total = DiskUsage::default();
        for tree in &self.trees {
            total += used_space(&tree.root)?;
        }
        Ok(total)
    }

    /// Returns the same to compare it with later. File systems that do not say count as empty: files
    /// are measured one by one, and this only attributes growth that none of them explains.
    fn filesystem_usage_or_none(&self) -> DiskUsage {
        available(self.filesystem_usage()).unwrap_or_default()
    }
}

/// How things were when a command began.
#[derive(Debug, Clone, Copy)]
struct DiskBaseline {
    sandbox: Option<DiskUsage>,
    filesystem: DiskUsage,
}

/// A tree that cannot be measured is more than any limit allows.
const UNMEASURABLE: DiskUsage = DiskUsage {
    bytes: u64::MAX,
    files: u64::MAX,
};

/// Returns the limit of a disk of some size.
fn usage_limit(bytes: u64) -> DiskUsage {
    let (small, large) = BYTES_PER_FILE;
    let per_file = if bytes < SMALL_DISK { small } else { large };
    DiskUsage {
        bytes,
        files: bytes / per_file,
    }
}

/// Returns how much of a file system is taken.
fn used_space(path: &Path) -> io::Result<DiskUsage> {
    let found = statvfs(path)?;
    Ok(DiskUsage {
        bytes: (found.f_blocks - found.f_bfree) * found.f_frsize,
        files: found.f_files.saturating_sub(found.f_ffree),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn disk(root: &Path, bytes: u64) -> DiskQuota {
        DiskQuota::new(vec![MeasuredTree::new(root)], Some(bytes), None)
    }

    #[tokio::test]
    async fn a_full_directory_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), vec![1; 300_000]).unwrap();
        let full = disk(dir.path(), 200_000);
        assert_eq!(full.wait_until_exceeded().await, CommandEnd::DiskLimit);
        // What is known to be full may be emptied, but not filled further.
        let waited = tokio::time::timeout(POLL_INTERVAL * 3, full.wait_until_exceeded()).await;
        assert!(waited.is_err(), "{waited:?}");
        let grows = async {
            tokio::time::sleep(POLL_INTERVAL / 2).await;
            fs::write(dir.path().join("more"), vec![1; 100_000]).unwrap();
        };
        let (ended, ()) = tokio::join!(full.wait_until_exceeded(), grows);
        assert_eq!(ended, CommandEnd::DiskLimit);
        let roomy = disk(dir.path(), 10_000_000);
        let waited = tokio::time::timeout(POLL_INTERVAL * 3, roomy.wait_until_exceeded()).await;
        assert!(waited.is_err(), "{waited:?}");
    }

    #[tokio::test]
    async fn files_without_content_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..300 {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let full = disk(dir.path(), 1 << 20);
        assert_eq!(full.wait_until_exceeded().await, CommandEnd::DiskLimit);
        let complaint = full.limit_message().unwrap();
        assert!(
            complaint.contains("300 files, at most 256 are allowed"),
            "{complaint}"
        );
    }
}
