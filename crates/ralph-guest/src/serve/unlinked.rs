//! Finds unlinked files that are still open: they use space until they are closed.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, statfs};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use tokio::sync::oneshot;

use super::usage::DiskUsage;
use crate::command::User;
use crate::{available, best_effort};

/// File systems in memory: `tmpfs` and `hugetlbfs`.
const IN_MEMORY_FILESYSTEMS: [i64; 2] = [0x0102_1994, 0x9584_58f6];

/// The open files of processes. All visible processes belong to commands.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFiles {
    /// The user of commands; by default that of this process.
    pub(super) user: Option<User>,
}

/// The unlinked files that processes of a sandbox have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UnlinkedFiles {
    pub(super) usage: DiskUsage,
    /// Whether a process hides its open files.
    pub(super) is_incomplete: bool,
}

impl OpenFiles {
    /// Finds the unlinked files. Only a process of the same user may inspect open files, so this
    /// runs on its own thread, which switches to the commands' user. Its real user stays the same,
    /// so that no command can signal the thread.
    pub(super) async fn unlinked(self) -> UnlinkedFiles {
        let user = self.user;
        let (sender, receiver) = oneshot::channel();
        let started = std::thread::Builder::new().spawn(move || {
            if user.is_none_or(|user| assume_user(user).is_ok()) {
                // The receiver is gone if the measurement was cancelled.
                best_effort(sender.send(scan_processes(Path::new("/proc"))));
            }
        });
        // A scan that cannot run finds nothing.
        let incomplete = UnlinkedFiles {
            is_incomplete: true,
            ..UnlinkedFiles::default()
        };
        match started {
            Ok(_) => receiver.await.unwrap_or(incomplete),
            Err(_) => incomplete,
        }
    }
}

fn assume_user(User { user, group }: User) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_res_gid(Gid::ROOT, group, Gid::ROOT)?;
    Ok(set_thread_res_uid(Uid::ROOT, user, Uid::ROOT)?)
}

fn scan_processes(proc: &Path) -> UnlinkedFiles {
    let own = std::process::id();
    let mut unlinked = UnlinkedFiles::default();
    let mut seen = HashSet::new();
    for process in processes(proc)
        .filter(|(id, _)| *id != own)
        .map(|(_, path)| path)
    {
        let entries = match fs::read_dir(process.join("fd")) {
            Ok(entries) => entries,
            Err(error) => {
                unlinked.is_incomplete |= error.kind() == ErrorKind::PermissionDenied;
                continue;
            }
        };
        for file in entries.flatten().map(|entry| entry.path()) {
            let Ok(metadata) = fs::metadata(&file) else {
                continue;
            };
            let is_unlinked = metadata.is_file() && metadata.nlink() == 0;
            if is_unlinked && !is_in_memory(&file) && seen.insert((metadata.dev(), metadata.ino()))
            {
                unlinked.usage += DiskUsage {
                    bytes: metadata.blocks() * 512,
                    files: 1,
                };
            }
        }
    }
    unlinked
}

fn processes(proc: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        Some((
            available(entry.file_name().to_str()?.parse())?,
            entry.path(),
        ))
    })
}

fn is_in_memory(file: &Path) -> bool {
    statfs(file).is_ok_and(|stat| IN_MEMORY_FILESYSTEMS.contains(&stat.f_type))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn an_unlinked_file_counts_while_it_is_open() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let line = "exec 3> file 4< file; rm file; head -c 3000000 /dev/zero >&3; echo; read _";
        let mut child = Command::new("sh")
            .args(["-c", line])
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let held = OpenFiles { user: None }.unlinked().await.usage;
        drop(child.stdin.take());
        child.wait().unwrap();
        let after = OpenFiles { user: None }.unlinked().await.usage;
        let held = held.growth_since(after);
        assert!((3_000_000..4_000_000).contains(&held.bytes), "{held:?}");
    }
}
