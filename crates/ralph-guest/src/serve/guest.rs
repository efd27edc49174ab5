//! The state of the guest.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{Gid, Uid, lstat};

use super::disk::DiskQuota;
use super::exec::DEFAULT_PATH;
use super::settings::GuestSettings;
use super::shared_memory::SharedMemory;
use super::unlinked::OpenFiles;
use super::usage::MeasuredTree;
use crate::cgroup::Cgroup;
use crate::command::{SandboxName, User};
use crate::files::{ConfinedDir, FileOwner};

/// A sandbox, seen from inside.
#[derive(Debug)]
pub struct Guest {
    pub(super) root: PathBuf,
    pub(super) dir: ConfinedDir,
    pub(super) name: SandboxName,
    /// The user of commands; by default that of this process.
    pub(super) user: Option<User>,
    /// The environment set by the image.
    pub(super) image_env: BTreeMap<String, String>,
    pub(super) disk: DiskQuota,
    /// The shared memory, if only commands use it.
    pub(super) memory: Option<SharedMemory>,
    pub(super) cgroup: Cgroup,
}

impl Guest {
    /// Opens the directory of a sandbox and creates missing parts.
    pub fn open(
        settings: &GuestSettings,
        user: Option<User>,
        image_env: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let root = &settings.root;
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        let confined_dir = match user {
            Some(User { user, group }) => ConfinedDir::with_owner(
                dir,
                FileOwner {
                    user: Uid::from_raw(user),
                    group: Gid::from_raw(group),
                },
            ),
            None => ConfinedDir::new(dir),
        };
        let open_files = settings.own_container.then_some(OpenFiles { user });
        let search_path = image_env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
        let memory = SharedMemory::new(user, search_path.as_ref());
        let guest = Self {
            root: root.clone(),
            dir: confined_dir,
            name: SandboxName::random(),
            user,
            image_env,
            disk: DiskQuota::new(writable_trees(settings), settings.disk_limit, open_files),
            memory: settings.own_container.then_some(memory),
            cgroup: Cgroup::open(),
        };
        guest.dir.ensure_layout().map_err(io::Error::other)?;
        Ok(guest)
    }

    /// Returns whether a command may enter an open directory.
    pub(super) fn may_enter(&self, directory: &Dir) -> bool {
        let Some(User { user, group }) = self.user else {
            return directory.symlink_metadata(".").is_ok();
        };
        directory.dir_metadata().is_ok_and(|metadata| {
            let needed = if metadata.uid() == user {
                0o100
            } else if metadata.gid() == group {
                0o010
            } else {
                0o001
            };
            metadata.mode() & needed != 0
        })
    }
}

/// Returns the trees that commands can write to.
fn writable_trees(settings: &GuestSettings) -> Vec<MeasuredTree> {
    let mut trees = vec![MeasuredTree::new(&settings.root)];
    if settings.writable_root {
        trees.push(MeasuredTree {
            root: "/".into(),
            since: Some(container_created_at()),
        });
    }
    trees
}

/// A file that the Docker Engine creates with a container.
const CONTAINER_MARKER: &str = "/.dockerenv";

/// Returns the creation time of the container in seconds, or the current time if it is unknown. All
/// files of its image are older.
fn container_created_at() -> i64 {
    lstat(CONTAINER_MARKER).map_or_else(|_| unix_now(), |stat| stat.st_ctime)
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}
