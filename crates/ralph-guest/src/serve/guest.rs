//! What the guest knows about its sandbox.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Gid, Uid};

use super::disk::Disk;
use crate::command::{HOME, Name, TMP, User};
use crate::files::{Owner, Place, Refusal};

/// The directories that every sandbox has.
const DIRECTORIES: [&str; 4] = ["repo", "scratch", HOME, TMP];

/// A sandbox, seen from inside.
#[derive(Debug)]
pub struct Guest {
    pub(super) root: PathBuf,
    pub(super) place: Place,
    pub(super) name: Name,
    /// Whom commands run as, unless as this process.
    pub(super) user: Option<User>,
    /// The environment that the image gives to programs.
    pub(super) image: BTreeMap<String, String>,
    pub(super) disk: Disk,
}

impl Guest {
    /// Opens the directory of a sandbox and makes what is missing in it.
    pub fn open(
        root: &Path,
        user: Option<User>,
        image: BTreeMap<String, String>,
        disk_limit: Option<u64>,
    ) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        let place = match user {
            Some(User { user, group }) => Place::owned(
                dir,
                Owner {
                    user: Uid::from_raw(user),
                    group: Gid::from_raw(group),
                },
            ),
            None => Place::new(dir),
        };
        let guest = Self {
            root: root.to_owned(),
            place,
            name: Name::random(),
            user,
            image,
            disk: Disk::new(root, disk_limit),
        };
        guest.furnish()?;
        Ok(guest)
    }

    /// Makes the directories that every sandbox has; a command may have removed them.
    pub(super) fn furnish(&self) -> io::Result<()> {
        for name in DIRECTORIES {
            match self.place.make_directory(name.as_ref()) {
                // Something else of that name is the command's own choice, and its own trouble.
                Ok(_) | Err(Refusal::Escapes | Refusal::NotRegular | Refusal::NotFound) => {}
                Err(Refusal::Io(error)) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(Refusal::Io(error)) => return Err(error),
            }
        }
        Ok(())
    }
}
