//! Reads a regular file, as a whole or in chunks.

use std::io::{self, Read as _};
use std::path::Path;

use cap_std::fs::{File, OpenOptions};

use super::confined_dir::ConfinedDir;
use super::error::ConfinedFileError;

/// An open regular file.
#[derive(Debug)]
pub struct FileReader {
    file: File,
    size: u64,
}

impl ConfinedDir {
    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &Path) -> Result<FileReader, ConfinedFileError> {
        let mut options = OpenOptions::new();
        options.read(true);
        let (file, size) = self.open_regular(path, &mut options)?;
        Ok(FileReader { file, size })
    }
}

impl FileReader {
    /// Returns the size of the file at the time it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads the next bytes into the buffer; returns 0 at the end.
    pub fn read_chunk(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }

    /// Returns the content, with one byte more than `limit` if the file has grown beyond it.
    pub fn read_bounded(self, limit: u64) -> io::Result<Vec<u8>> {
        let expected = usize::try_from(self.size.min(limit)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(expected);
        self.file
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
