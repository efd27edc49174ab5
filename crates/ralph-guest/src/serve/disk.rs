//! Ends commands that fill the sandbox's disk.
//!
//! A volume has no quota. The usage of the whole file system is polled often, which is cheap; only
//! if it grew enough to exceed the limit is the sandbox itself measured: its files and the unlinked
//! files that its processes have open.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use rustix::fs::statvfs;
use rustix::io::Errno;

use super::unlinked::{OpenFiles, UnlinkedFiles};
use super::usage::{DiskUsage, MeasuredTree};
use crate::available;
use crate::command::{CommandEnd, no_watchdog};

/// The interval between polls of the file system.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of polls after which the sandbox is measured in any case.
const MEASURE_EVERY: u32 = 30;
/// The bytes per file that limit the number of files, on a small disk and on a larger one, as on an
/// ext4 file system of that size. Empty files use no space, but their number is limited.
const BYTES_PER_FILE: (u64, u64) = (4 << 10, 16 << 10);
const SMALL_DISK: u64 = 512 << 20;

/// A limit on the total size of directory trees.
#[derive(Debug)]
pub(super) struct DiskQuota {
    trees: Vec<MeasuredTree>,
    limit: Option<DiskUsage>,
    open_files: Option<OpenFiles>,
    last: Mutex<Option<DiskMeasurement>>,
}

/// The usage of the sandbox and of its file systems at the same moment.
#[derive(Debug, Clone, Copy)]
struct DiskMeasurement {
    sandbox: DiskUsage,
    filesystem: DiskUsage,
    /// Why the sandbox could not be measured.
    error: Option<Errno>,
}

impl DiskQuota {
    /// Limits the size of trees and open files, in bytes.
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

    /// Waits until the sandbox exceeds its limit. If it does so already, it may not grow any further,
    /// so that a command can still free space.
    pub(super) async fn wait_until_exceeded(&self) -> CommandEnd {
        let Some(limit) = self.limit else {
            return no_watchdog().await;
        };
        let start = self.baseline().await;
        let was_over = start.sandbox.is_some_and(|sandbox| sandbox.exceeds(limit));
        let allowed = match start.sandbox {
            Some(sandbox) if was_over => limit.max(sandbox),
            Some(_) | None => limit,
        };
        for poll in 1_u32.. {
            tokio::time::sleep(POLL_INTERVAL).await;
            // Frees elsewhere can hide growth here, so the sandbox is also measured periodically.
            let is_due = poll.is_multiple_of(MEASURE_EVERY) || self.upper_bound().exceeds(allowed);
            if is_due && self.measure(start).await.exceeds(allowed) {
                return CommandEnd::DiskLimit;
            }
        }
        no_watchdog().await
    }

    /// Describes the limit that the last measurement exceeded.
    pub(super) fn limit_message(&self) -> Option<String> {
        let (limit, last) = (self.limit?, self.last_measurement()?);
        if let Some(error) = last.error {
            return Some(unmeasurable_message(error));
        }
        let sandbox = last.sandbox;
        Some(if sandbox.files > limit.files {
            let (files, max) = (sandbox.files, limit.files);
            format!("ralph: the sandbox's disk is full: {files} files, at most {max} are allowed\n")
        } else {
            let (bytes, max) = (sandbox.bytes >> 20, limit.bytes >> 20);
            format!(
                "ralph: the sandbox's disk is full: {bytes} MiB, at most {max} MiB are allowed\n"
            )
        })
    }

    fn last_measurement(&self) -> Option<DiskMeasurement> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the usage at the start of a command. A sandbox over its limit is measured again.
    async fn baseline(&self) -> DiskBaseline {
        let limit = self.limit.unwrap_or_default();
        let filesystem = self.filesystem_usage_or_zero();
        let sandbox = match self.last_measurement() {
            Some(last) if last.sandbox.exceeds(limit) => {
                let start = DiskBaseline {
                    sandbox: None,
                    filesystem,
                };
                Some(self.measure(start).await)
            }
            last => last.map(|last| last.sandbox),
        };
        DiskBaseline {
            sandbox,
            filesystem,
        }
    }

    /// Returns the usage of the sandbox if all growth belongs to it.
    fn upper_bound(&self) -> DiskUsage {
        match (self.last_measurement(), self.filesystem_usage()) {
            (Some(last), Ok(now)) => last.sandbox + now.growth_since(last.filesystem),
            (None, _) | (_, Err(_)) => UNMEASURABLE,
        }
    }

    async fn measure(&self, start: DiskBaseline) -> DiskUsage {
        let filesystem = self.filesystem_usage_or_zero();
        let (sandbox, error) = match self.sandbox_usage(start, filesystem).await {
            Ok(sandbox) => (sandbox, None),
            Err(error) => {
                let number = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                (UNMEASURABLE, Some(number))
            }
        };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(DiskMeasurement {
            sandbox,
            filesystem,
            error,
        });
        sandbox
    }

    async fn sandbox_usage(
        &self,
        start: DiskBaseline,
        filesystem: DiskUsage,
    ) -> io::Result<DiskUsage> {
        let mut linked = DiskUsage::default();
        for tree in &self.trees {
            linked += tree.usage().await?;
        }
        let UnlinkedFiles {
            usage,
            is_incomplete,
        } = match self.open_files {
            Some(open_files) => open_files.unlinked().await,
            None => UnlinkedFiles::default(),
        };
        if !is_incomplete {
            return Ok(linked + usage);
        }
        // A process hides its open files, so growth since the start of the command that no file
        // explains is attributed to them.
        let grown = filesystem.growth_since(start.filesystem);
        let explained = linked.growth_since(start.sandbox.unwrap_or_default());
        let unexplained = DiskUsage {
            files: 0,
            ..grown.growth_since(explained)
        };
        Ok(linked + usage.max(unexplained))
    }

    /// Returns the used space of the file systems.
    fn filesystem_usage(&self) -> io::Result<DiskUsage> {
        let mut total = DiskUsage::default();
        for tree in &self.trees {
            total += used_space(&tree.root)?;
        }
        Ok(total)
    }

    /// Returns the used space for a later comparison. File systems that do not report it count as
    /// empty: files are measured individually, and this only attributes otherwise unexplained growth.
    fn filesystem_usage_or_zero(&self) -> DiskUsage {
        available(self.filesystem_usage()).unwrap_or_default()
    }
}

/// The usage at the start of a command.
#[derive(Debug, Clone, Copy)]
struct DiskBaseline {
    sandbox: Option<DiskUsage>,
    filesystem: DiskUsage,
}

/// A tree that cannot be measured exceeds every limit.
const UNMEASURABLE: DiskUsage = DiskUsage {
    bytes: u64::MAX,
    files: u64::MAX,
};

/// Describes why a sandbox that could not be measured counts as full.
fn unmeasurable_message(error: Errno) -> String {
    if error == Errno::MFILE {
        return "ralph: the sandbox's disk is full: its directories are too deep to be measured\n"
            .to_owned();
    }
    let error = io::Error::from(error);
    format!("ralph: the sandbox's disk counts as full: its size cannot be measured: {error}\n")
}

/// Returns the limit for a disk size.
fn usage_limit(bytes: u64) -> DiskUsage {
    let (small, large) = BYTES_PER_FILE;
    let per_file = if bytes < SMALL_DISK { small } else { large };
    DiskUsage {
        bytes,
        files: bytes / per_file,
    }
}

/// Returns the used space of a file system.
fn used_space(path: &Path) -> io::Result<DiskUsage> {
    let stat = statvfs(path)?;
    Ok(DiskUsage {
        bytes: (stat.f_blocks - stat.f_bfree) * stat.f_frsize,
        files: stat.f_files.saturating_sub(stat.f_ffree),
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
        // A full sandbox may shrink but not grow.
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
    async fn a_tree_that_cannot_be_measured_counts_as_full() {
        let dir = tempfile::tempdir().unwrap();
        let missing = disk(&dir.path().join("missing"), 1 << 20);
        assert_eq!(missing.wait_until_exceeded().await, CommandEnd::DiskLimit);
        assert_eq!(
            missing.limit_message().unwrap(),
            "ralph: the sandbox's disk counts as full: its size cannot be measured: \
             No such file or directory (os error 2)\n"
        );
        assert!(unmeasurable_message(Errno::MFILE).contains("too deep to be measured"));
    }

    #[tokio::test]
    async fn files_without_content_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..300 {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let full = disk(dir.path(), 1 << 20);
        assert_eq!(full.wait_until_exceeded().await, CommandEnd::DiskLimit);
        let message = full.limit_message().unwrap();
        assert!(
            message.contains("300 files, at most 256 are allowed"),
            "{message}"
        );
    }
}
