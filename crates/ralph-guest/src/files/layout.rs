//! The standard directories of a sandbox.

use std::path::Path;

use cap_std::fs::{Permissions, PermissionsExt as _};
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::confined_dir::ConfinedDir;
use super::error::ConfinedFileError;
use super::remove::remove_entry;
use crate::command::{CACHE, HOME, TMP};

const DIRECTORIES: [&str; 5] = ["repo", "scratch", HOME, TMP, CACHE];

/// The permissions that the owner of a directory needs to use it.
const OWNER_ACCESS: u32 = 0o700;

impl ConfinedDir {
    /// Ensures that the standard directories are real directories that their owner can use. A
    /// command may have removed them, changed their permissions or replaced them with links, which
    /// must not be followed.
    pub fn ensure_layout(&self) -> Result<(), ConfinedFileError> {
        for name in DIRECTORIES {
            match statat(self.dir(), name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if !FileType::from_raw_mode(stat.st_mode).is_dir() => {
                    remove_entry(self.dir(), name.as_ref())?;
                    self.create_directory(Path::new(name))?;
                }
                Ok(stat) if stat.st_mode & OWNER_ACCESS == OWNER_ACCESS => {}
                Ok(stat) => {
                    let mode = Permissions::from_mode(stat.st_mode & 0o7777 | OWNER_ACCESS);
                    self.dir().set_permissions(name, mode)?;
                }
                Err(Errno::NOENT) => drop(self.create_directory(Path::new(name))?),
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    use super::*;

    #[test]
    fn links_and_files_that_replace_a_directory_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "kept").unwrap();
        let path = |name: &str| root.path().join(name);
        symlink(outside.path(), path("repo")).unwrap();
        fs::write(path("scratch"), "a file").unwrap();
        fs::create_dir(path("home")).unwrap();
        fs::write(path("home/file"), "kept").unwrap();
        fs::set_permissions(path("home"), fs::Permissions::from_mode(0o000)).unwrap();
        let dir = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        ConfinedDir::new(dir).ensure_layout().unwrap();
        for name in DIRECTORIES {
            let found = fs::symlink_metadata(path(name)).unwrap();
            assert!(found.is_dir(), "{name}");
            assert_eq!(
                found.permissions().mode() & OWNER_ACCESS,
                OWNER_ACCESS,
                "{name}"
            );
        }
        assert_eq!(fs::read_to_string(path("home/file")).unwrap(), "kept");
        let kept = fs::read_to_string(outside.path().join("kept"));
        assert_eq!(kept.unwrap(), "kept");
    }
}
