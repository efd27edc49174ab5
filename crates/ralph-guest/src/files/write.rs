//! Writes a regular file, as a whole or piece by piece.

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

/// A regular file that is being written. Dropped before its end, it leaves the old one as it was.
#[derive(Debug)]
pub struct FileWriter<'a> {
    dir: &'a ConfinedDir,
    file: File,
    completion: WriteCompletion,
}

/// What happens after the last byte.
#[derive(Debug)]
enum WriteCompletion {
    /// Nothing: the bytes are where they belong.
    Append,
    /// The file takes its place.
    Rename {
        temporary: PathBuf,
        parent: Dir,
        name: PathBuf,
        mode: u32,
    },
    /// It has taken its place.
    Done,
}

impl ConfinedDir {
    /// Begins to make a file out of new bytes, all or nothing. An existing one keeps its permissions.
    pub fn replace(&self, path: &Path) -> Result<FileWriter<'_>, ConfinedFileError> {
        let (target, existing) = self.follow_links(path)?;
        let mode = match existing {
            Some(metadata) if !metadata.is_file() => return Err(ConfinedFileError::NotRegular),
            Some(metadata) => metadata.mode() & 0o777,
            None => NEW_FILE_MODE,
        };
        let name = PathBuf::from(target.file_name().ok_or(ConfinedFileError::NotRegular)?);
        let parent = self.create_directory(parent_of(&target).unwrap_or(Path::new(".")))?;
        // The temporary file is beside the repository, where a crash leaves nothing to commit. Nothing
        // is synced: what has to survive a power cut is kept outside of the sandbox.
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

    /// Begins to put bytes at the end of a file.
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
    /// Writes what comes next.
    pub fn write_chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> Result<(), ConfinedFileError> {
        if let WriteCompletion::Rename {
            temporary,
            parent,
            name,
            mode,
        } = &self.completion
        {
            self.dir.set_owner(&self.file)?;
            // Set afterwards, so that it does not depend on the mask of this process.
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
