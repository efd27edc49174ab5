//! Writes a regular file, as a whole or in chunks.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::PermissionsExt as _;
use cap_std::fs::{Dir, File, MetadataExt as _, OpenOptions, OpenOptionsExt as _, Permissions};

use super::confined_dir::{ConfinedDir, parent_of};
use super::error::ConfinedFileError;
use crate::best_effort;
use crate::command::SandboxName;

/// The permissions of a new file.
const NEW_FILE_MODE: u32 = 0o644;

/// A regular file that is being written. If a replacement is dropped before `finish`, the existing
/// file stays unchanged; appended bytes are written at once.
#[derive(Debug)]
pub struct FileWriter<'a> {
    dir: &'a ConfinedDir,
    file: File,
    completion: WriteCompletion,
}

/// The action after the last byte.
#[derive(Debug)]
enum WriteCompletion {
    /// None: the bytes were appended in place.
    Append,
    /// Renames the temporary file to its target.
    Rename {
        temporary: PathBuf,
        parent: Dir,
        name: PathBuf,
        mode: u32,
    },
    Done,
}

impl ConfinedDir {
    /// Starts to replace a file atomically. An existing file keeps its permissions.
    pub fn replace(&self, path: &Path) -> Result<FileWriter<'_>, ConfinedFileError> {
        let (target, existing) = self.follow_links(path)?;
        let mode = match existing {
            Some(metadata) if !metadata.is_file() => return Err(ConfinedFileError::NotRegular),
            Some(metadata) => metadata.mode() & 0o777,
            None => NEW_FILE_MODE,
        };
        let name = PathBuf::from(target.file_name().ok_or(ConfinedFileError::NotRegular)?);
        let parent = self.create_directory(parent_of(&target).unwrap_or(Path::new(".")))?;
        // The temporary file is outside the repository, so that a crash leaves nothing to commit.
        // It is not synced: data that must survive a power failure is stored outside the sandbox.
        let temporary = PathBuf::from(format!(".write-{}", SandboxName::random()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = self.dir().open_with(&temporary, &options)?;
        Ok(FileWriter {
            dir: self,
            file,
            completion: WriteCompletion::Rename {
                temporary,
                parent,
                name,
                mode,
            },
        })
    }

    /// Starts to append to a file.
    pub fn append(&self, path: &Path) -> Result<FileWriter<'_>, ConfinedFileError> {
        let (target, existing) = self.follow_links(path)?;
        if existing.is_none() {
            self.create_directory(parent_of(&target).unwrap_or(Path::new(".")))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(NEW_FILE_MODE);
        let (file, _) = self.open_regular(&target, &mut options)?;
        if existing.is_none() {
            self.set_owner(&file)?;
        }
        Ok(FileWriter {
            dir: self,
            file,
            completion: WriteCompletion::Append,
        })
    }
}

impl FileWriter<'_> {
    /// Writes the next bytes.
    pub fn write_chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Completes the write.
    pub fn finish(mut self) -> Result<(), ConfinedFileError> {
        if let WriteCompletion::Rename {
            temporary,
            parent,
            name,
            mode,
        } = &self.completion
        {
            self.dir.set_owner(&self.file)?;
            // Set explicitly, so that they do not depend on the umask.
            self.file.set_permissions(Permissions::from_mode(*mode))?;
            self.dir.dir().rename(temporary, parent, name)?;
        }
        self.completion = WriteCompletion::Done;
        Ok(())
    }
}

impl Drop for FileWriter<'_> {
    fn drop(&mut self) {
        if let WriteCompletion::Rename { temporary, .. } = &self.completion {
            // A temporary file that stays is removed with the sandbox.
            best_effort(self.dir.dir().remove_file(temporary));
        }
    }
}
