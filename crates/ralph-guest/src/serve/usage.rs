//! Measures the size of a directory of any depth without following links.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::ops::{Add, AddAssign};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

/// The number of files after which other tasks may run.
const FILES_PER_YIELD: u64 = 256;
/// The maximum number of open directories. A tree that needs more cannot be measured.
const MAX_OPEN_DIRECTORIES: usize = 256;

/// An amount of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DiskUsage {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl DiskUsage {
    /// Returns whether this is more than a limit allows, in bytes or in files.
    pub(super) fn exceeds(self, limit: Self) -> bool {
        self.bytes > limit.bytes || self.files > limit.files
    }

    /// Returns the larger of both amounts.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            files: self.files.max(other.files),
        }
    }

    /// Returns the growth since an earlier amount.
    pub(super) fn growth_since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            files: self.files.saturating_sub(earlier.files),
        }
    }
}

impl Add for DiskUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }
}

impl AddAssign for DiskUsage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// A directory tree that belongs to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MeasuredTree {
    pub(super) root: PathBuf,
    /// Only files created or changed after this time count, in seconds: on an overlay, those of the
    /// image are older than the container.
    pub(super) since: Option<i64>,
}

impl MeasuredTree {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            since: None,
        }
    }

    /// Returns the size of the tree on its own file system.
    pub(super) async fn usage(&self) -> io::Result<DiskUsage> {
        let root = open(CWD, &self.root)?;
        let device = statat(&root, "", AtFlags::EMPTY_PATH)?.st_dev;
        let mut walk = UsageWalk {
            device,
            since: self.since,
            seen_inodes: HashSet::new(),
            total: DiskUsage::default(),
        };
        let mut open_dirs = vec![walk.read(root).await?];
        while let Some(top) = open_dirs.last_mut() {
            let Some(name) = top.unvisited.pop() else {
                open_dirs.pop();
                continue;
            };
            let child = open(&top.handle, &name);
            // Closed as early as possible, so that a deep chain needs few handles.
            if top.unvisited.is_empty() {
                open_dirs.pop();
            }
            let child = match child {
                Ok(child) => child,
                // Removed or replaced in the meantime.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(error.into()),
            };
            if open_dirs.len() >= MAX_OPEN_DIRECTORIES {
                return Err(Errno::MFILE.into());
            }
            open_dirs.push(walk.read(child).await?);
        }
        Ok(walk.total)
    }
}

/// A directory and its unvisited subdirectories.
struct OpenDir {
    handle: OwnedFd,
    unvisited: Vec<CString>,
}

struct UsageWalk {
    device: u64,
    since: Option<i64>,
    /// Files with several names, which count once.
    seen_inodes: HashSet<u64>,
    total: DiskUsage,
}

impl UsageWalk {
    async fn read(&mut self, handle: OwnedFd) -> io::Result<OpenDir> {
        let mut unvisited = Vec::new();
        for entry in Dir::read_from(&handle)? {
            let entry = entry?;
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            // A file that disappears meanwhile uses no space.
            let Ok(stat) = statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            self.count(&stat);
            let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
            if is_dir && stat.st_dev == self.device {
                unvisited.push(name.to_owned());
            }
            if self.total.files.is_multiple_of(FILES_PER_YIELD) {
                tokio::task::yield_now().await;
            }
        }
        Ok(OpenDir { handle, unvisited })
    }

    fn count(&mut self, stat: &Stat) {
        let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
        let is_repeated = stat.st_nlink > 1 && !is_dir && !self.seen_inodes.insert(stat.st_ino);
        let is_older = self.since.is_some_and(|since| stat.st_ctime < since);
        if !is_repeated && !is_older {
            self.total += file_usage(stat);
        }
    }
}

/// Returns the size of one file.
fn file_usage(stat: &Stat) -> DiskUsage {
    DiskUsage {
        bytes: u64::try_from(stat.st_blocks).unwrap_or(0) * 512,
        files: 1,
    }
}

fn open(parent: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::mkdirat;

    use super::*;

    #[tokio::test]
    async fn files_count_once_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), vec![1; 300_000]).unwrap();
        fs::hard_link(dir.path().join("a/b/file"), dir.path().join("again")).unwrap();
        symlink("/usr", dir.path().join("link")).unwrap();
        let found = MeasuredTree::new(dir.path()).usage().await.unwrap();
        assert!((300_000..400_000).contains(&found.bytes), "{found:?}");
        assert_eq!(found.files, 4);
        let later = MeasuredTree {
            since: Some(i64::MAX),
            ..MeasuredTree::new(dir.path())
        };
        assert_eq!(later.usage().await.unwrap(), DiskUsage::default());
    }

    #[tokio::test]
    async fn paths_of_any_length_are_measured() {
        let dir = tempfile::tempdir().unwrap();
        let name = "d".repeat(200);
        let mut deep = open(CWD, dir.path()).unwrap();
        for _ in 0..1000 {
            mkdirat(&deep, &*name, Mode::RWXU).unwrap();
            deep = open(&deep, &*name).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = openat(&deep, "file", flags, Mode::RWXU).unwrap();
        rustix::io::write(&file, &vec![1; 300_000]).unwrap();
        let found = MeasuredTree::new(dir.path()).usage().await.unwrap();
        assert_eq!(found.files, 1001);
        assert!(found.bytes >= 300_000, "{found:?}");
        // The standard library cannot remove it by its path.
        let parent = cap_std::fs::Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority());
        crate::files::remove_entry(&parent.unwrap(), name.as_ref()).unwrap();
    }
}
