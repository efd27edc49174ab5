//! The file of a journal, as far as it shows whether the journal has changed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The identity, length and time of a journal's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalFile {
    pub(super) device: i64,
    pub(super) inode: i64,
    pub(super) length: i64,
    /// The time of the last change in nanoseconds.
    pub(super) modified_ns: i64,
}

impl JournalFile {
    /// Inspects a journal; none if there is none.
    pub(super) fn inspect(journal: &Path) -> io::Result<Option<Self>> {
        let metadata = match fs::metadata(journal) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let seconds = metadata.mtime().saturating_mul(1_000_000_000);
        Ok(Some(Self {
            // The numbers are only compared.
            device: metadata.dev().cast_signed(),
            inode: metadata.ino().cast_signed(),
            length: metadata.len().cast_signed(),
            modified_ns: seconds.saturating_add(metadata.mtime_nsec()),
        }))
    }

    /// Returns whether the name stands for the same file as before.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}
