//! What the guest knows about its sandbox.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{Gid, Uid};

use super::disk::Disk;
use crate::cgroup::Cgroup;
use crate::command::{Name, User};
use crate::files::{Owner, Place};

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
        guest.place.furnish().map_err(io::Error::other)?;
        Ok(guest)
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
