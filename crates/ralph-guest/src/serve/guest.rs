//! What the guest knows about its sandbox.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{Gid, Uid, lstat};

use super::disk::Disk;
use super::exec::DEFAULT_PATH;
use super::settings::Settings;
use super::shared_memory::SharedMemory;
use super::unlinked::OpenFiles;
use super::usage::Tree;
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
    /// The shared memory, where only commands use it.
    pub(super) memory: Option<SharedMemory>,
    pub(super) cgroup: Cgroup,
}

impl Guest {
    /// Opens the directory of a sandbox and makes what is missing in it.
    pub fn open(
        settings: &Settings,
        user: Option<User>,
        image: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let root = &settings.root;
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
        let open_files = settings.own_container.then_some(OpenFiles { user });
        let search_path = image.get("PATH").map_or(DEFAULT_PATH, String::as_str);
        let memory = SharedMemory::new(user, search_path.as_ref());
        let guest = Self {
            root: root.clone(),
            place,
            name: Name::random(),
            user,
            image,
            disk: Disk::new(trees(settings), settings.disk_limit, open_files),
            memory: settings.own_container.then_some(memory),
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

/// Returns the trees that commands can write to.
fn trees(settings: &Settings) -> Vec<Tree> {
    let mut trees = vec![Tree::whole(&settings.root)];
    if settings.writable_root {
        trees.push(Tree {
            root: "/".into(),
            since: Some(created()),
        });
    }
    trees
}

/// A file that the engine makes with a container.
const MADE_WITH_THE_CONTAINER: &str = "/.dockerenv";

/// Returns when the container was created, in seconds. Everything in its image is older.
fn created() -> i64 {
    lstat(MADE_WITH_THE_CONTAINER).map_or_else(|_| now(), |made| made.st_ctime)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}
