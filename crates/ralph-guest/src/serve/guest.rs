//! What the guest knows about its sandbox.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, Permissions, PermissionsExt as _};
use rustix::fs::{AtFlags, FileType, Gid, Uid, statat};
use rustix::io::Errno;

use super::disk::Disk;
use crate::cgroup::Cgroup;
use crate::command::{HOME, Name, TMP, User};
use crate::files::{Owner, Place};

/// The directories that every sandbox has.
const DIRECTORIES: [&str; 4] = ["repo", "scratch", HOME, TMP];

/// What the owner of a directory needs to use it.
const OWN: u32 = 0o700;

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
    pub(super) cgroup: Cgroup,
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
            cgroup: Cgroup::open(),
        };
        guest.furnish()?;
        Ok(guest)
    }

    /// Makes the directories that every sandbox has, and opens them to commands: one may have
    /// removed or sealed them.
    pub(super) fn furnish(&self) -> io::Result<()> {
        for name in DIRECTORIES {
            match statat(self.place.dir(), name, AtFlags::SYMLINK_NOFOLLOW) {
                // Something else of that name is the command's own choice, and its own trouble.
                Ok(found) if !FileType::from_raw_mode(found.st_mode).is_dir() => {}
                Ok(found) if found.st_mode & OWN == OWN => {}
                Ok(found) => {
                    let mode = Permissions::from_mode(found.st_mode & 0o7777 | OWN);
                    self.place.dir().set_permissions(name, mode)?;
                }
                Err(Errno::NOENT) => {
                    self.place
                        .make_directory(name.as_ref())
                        .map_err(io::Error::other)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Tells whether a command may go into a directory that is open.
    pub(super) fn may_enter(&self, directory: &Dir) -> bool {
        let Some(User { user, group }) = self.user else {
            return directory.symlink_metadata(".").is_ok();
        };
        directory.dir_metadata().is_ok_and(|found| {
            let needed = if found.uid() == user {
                0o100
            } else if found.gid() == group {
                0o010
            } else {
                0o001
            };
            found.mode() & needed != 0
        })
    }
}
