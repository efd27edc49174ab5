//! Lists a directory.

use std::io::ErrorKind;
use std::path::Path;

use cap_std::fs::{FileType, MetadataExt as _};
use serde::{Deserialize, Serialize};

use super::confined_dir::ConfinedDir;
use super::error::ConfinedFileError;

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link with any target.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDirEntry {
    pub name: String,
    pub kind: GuestEntryKind,
    /// In bytes.
    pub size: u64,
    /// The modification time, in seconds since 1970.
    pub modified_s: i64,
    /// The nanoseconds of the modification time.
    pub modified_ns: i64,
}

impl ConfinedDir {
    /// Returns the entries of a directory, sorted by name.
    pub fn list(&self, path: &Path) -> Result<Vec<GuestDirEntry>, ConfinedFileError> {
        let mut entries = Vec::new();
        for entry in self.dir().read_dir(path)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            entries.push(GuestDirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                kind: GuestEntryKind::from_file_type(metadata.file_type()),
                size: metadata.len(),
                modified_s: metadata.mtime(),
                modified_ns: metadata.mtime_nsec(),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

impl GuestEntryKind {
    /// Returns the kind for a file type.
    pub fn from_file_type(file_type: FileType) -> Self {
        if file_type.is_file() {
            Self::File
        } else if file_type.is_dir() {
            Self::Directory
        } else if file_type.is_symlink() {
            Self::Link
        } else {
            Self::Special
        }
    }
}
