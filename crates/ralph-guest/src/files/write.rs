//! Writes a regular file, as a whole or piece by piece.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::PermissionsExt as _;
use cap_std::fs::{Dir, File, MetadataExt as _, OpenOptions, OpenOptionsExt as _, Permissions};

use super::place::{Place, parent_of};
use super::refusal::Refusal;
use crate::command::Name;

/// The permissions of a new file.
const NEW_FILE_MODE: u32 = 0o644;

/// A regular file that is being written. Dropped before its end, it leaves the old one as it was.
#[derive(Debug)]
pub struct Writing<'a> {
    place: &'a Place,
    file: File,
    end: End,
}

/// What happens after the last byte.
#[derive(Debug)]
enum End {
    /// Nothing: the bytes are where they belong.
    Appended,
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

impl Place {
    /// Begins to make a file out of new bytes, all or nothing. An existing one keeps its permissions.
    pub fn replace(&self, path: &Path) -> Result<Writing<'_>, Refusal> {
        let (target, existing) = self.follow_links(path)?;
        let mode = match existing {
            Some(metadata) if !metadata.is_file() => return Err(Refusal::NotRegular),
            Some(metadata) => metadata.mode() & 0o777,
            None => NEW_FILE_MODE,
        };
        let name = PathBuf::from(target.file_name().ok_or(Refusal::NotRegular)?);
        let parent = self.make_directory(parent_of(&target).unwrap_or(Path::new(".")))?;
        // The temporary file is beside the repository, where a crash leaves nothing to commit. Nothing
        // is synced: what has to survive a power cut is kept outside of the sandbox.
        let temporary = PathBuf::from(format!(".write-{}", Name::random()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = self.dir().open_with(&temporary, &options)?;
        Ok(Writing {
            place: self,
            file,
            end: End::Rename {
                temporary,
                parent,
                name,
                mode,
            },
        })
    }

    /// Begins to put bytes at the end of a file.
    pub fn append(&self, path: &Path) -> Result<Writing<'_>, Refusal> {
        let (target, existing) = self.follow_links(path)?;
        if existing.is_none() {
            self.make_directory(parent_of(&target).unwrap_or(Path::new(".")))?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(NEW_FILE_MODE);
        let (file, _) = self.open_regular(&target, &mut options)?;
        if existing.is_none() {
            self.give(&file)?;
        }
        Ok(Writing {
            place: self,
            file,
            end: End::Appended,
        })
    }
}

impl Writing<'_> {
    /// Writes what comes next.
    pub fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Puts the file in its place.
    pub fn finish(mut self) -> Result<(), Refusal> {
        if let End::Rename {
            temporary,
            parent,
            name,
            mode,
        } = &self.end
        {
            self.place.give(&self.file)?;
            // Set afterwards, so that it does not depend on the mask of this process.
            self.file.set_permissions(Permissions::from_mode(*mode))?;
            self.place.dir().rename(temporary, parent, name)?;
        }
        self.end = End::Done;
        Ok(())
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let End::Rename { temporary, .. } = &self.end {
            // It is in nobody's way if this fails.
            self.place.dir().remove_file(temporary).ok();
        }
    }
}
