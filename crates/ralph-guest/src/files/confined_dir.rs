//! A directory that confines all file operations, and path resolution inside it.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, openat};

use super::error::ConfinedFileError;
use super::remove::remove_entry;

/// The number of consecutive links that are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// The owner of new files and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOwner {
    pub user: Uid,
    pub group: Gid,
}

/// Waits until everything on the filesystem of an open file is on disk.
pub fn sync_filesystem(file: impl Into<OwnedFd>) -> io::Result<()> {
    let file = file.into();
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&file)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    drop(file);
    Ok(())
}

/// A directory that no operation can leave.
#[derive(Debug)]
pub struct ConfinedDir {
    dir: Dir,
    owner: Option<FileOwner>,
}

impl ConfinedDir {
    /// Wraps a directory; new entries belong to this process's user.
    pub fn new(dir: Dir) -> Self {
        Self { dir, owner: None }
    }

    /// Opens a directory of this machine by its path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Dir::open_ambient_dir(path, cap_std::ambient_authority()).map(Self::new)
    }

    /// Wraps a directory; new entries are given to `owner`.
    pub fn with_owner(dir: Dir, owner: FileOwner) -> Self {
        Self {
            dir,
            owner: Some(owner),
        }
    }

    /// Waits until everything written to the filesystem of the directory, by any program, is on
    /// disk. One call covers files, renames and new names.
    pub fn sync(&self) -> io::Result<()> {
        // The stored handle can only be used to resolve paths.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        sync_filesystem(openat(&self.dir, ".", flags, Mode::empty())?)
    }

    /// Returns the handle of the directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Opens a directory.
    pub fn open_directory(&self, path: &Path) -> Result<Dir, ConfinedFileError> {
        Ok(self.dir.open_dir(path)?)
    }

    /// Creates a directory and its missing parents, and opens it.
    pub fn create_directory(&self, path: &Path) -> Result<Dir, ConfinedFileError> {
        match self.dir.open_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return Ok(opened?),
        }
        if let Some(parent) = parent_of(path) {
            self.create_directory(parent)?;
        }
        match self.dir.create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => result?,
        }
        let created = self.dir.open_dir(path)?;
        self.set_owner(&created)?;
        Ok(created)
    }

    /// Removes a file, a link itself, or a whole directory. A missing entry is not an error.
    pub fn delete(&self, path: &Path) -> Result<(), ConfinedFileError> {
        let parent = parent_of(path).unwrap_or(Path::new("."));
        match self.dir.open_dir(parent) {
            Ok(parent) => Ok(remove_entry(
                &parent,
                path.file_name().unwrap_or(OsStr::new(".")),
            )?),
            // Without a parent directory there is nothing to remove.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Changes the owner of a new entry.
    pub(super) fn set_owner(&self, entry: &impl std::os::fd::AsFd) -> io::Result<()> {
        match self.owner {
            // `fchown` would refuse a handle that is only usable for path resolution.
            Some(FileOwner { user, group }) => {
                let flags = AtFlags::EMPTY_PATH;
                Ok(chownat(entry, "", Some(user), Some(group), flags)?)
            }
            None => Ok(()),
        }
    }

    /// Opens a regular file and returns its size. Opening a pipe could block and opening a device
    /// could have side effects, so the type is checked before, and again afterwards in case the
    /// file was replaced.
    pub(super) fn open_regular(
        &self,
        path: &Path,
        options: &mut OpenOptions,
    ) -> Result<(File, u64), ConfinedFileError> {
        match self.dir.metadata(path) {
            Ok(metadata) if !metadata.is_file() => return Err(ConfinedFileError::NotRegular),
            // A missing file may be about to be created; opening it reports other errors.
            Ok(_) | Err(_) => {}
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
        let file = self.dir.open_with(path, options)?;
        let metadata = file.metadata()?;
        if metadata.is_file() {
            Ok((file, metadata.len()))
        } else {
            Err(ConfinedFileError::NotRegular)
        }
    }

    /// Follows links at the end of a path and returns the final path with its metadata, or without
    /// metadata if nothing exists there.
    pub(super) fn follow_links(
        &self,
        path: &Path,
    ) -> Result<(PathBuf, Option<Metadata>), ConfinedFileError> {
        let mut target = path.to_owned();
        for _ in 0..MAX_LINKS {
            let metadata = match self.dir.symlink_metadata(&target) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok((target, None)),
                Err(error) => return Err(error.into()),
            };
            if !metadata.is_symlink() {
                return Ok((target, Some(metadata)));
            }
            let link = self.dir.read_link_contents(&target)?;
            // An absolute link replaces the whole path and is refused in the next round.
            target = parent_of(&target).unwrap_or(Path::new("")).join(link);
        }
        Err(io::Error::from(rustix::io::Errno::LOOP).into())
    }
}

/// Returns the parent of a path, if the path names one.
pub(super) fn parent_of(path: &Path) -> Option<&Path> {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
}
