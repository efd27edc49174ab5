//! A separate file system, for tests of full disks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ralph_guest::best_effort;

/// A file system in memory, unmounted on drop.
pub(crate) struct TmpfsMount(PathBuf);

impl TmpfsMount {
    /// Mounts a tmpfs at a directory; reports why if that is not possible.
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    pub(crate) fn at(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        println!("skipped: only root can mount a file system");
        None
    }

    /// Changes the options, such as the size.
    pub(crate) fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let mounted = Command::new("mount")
            .args(["-o", &options])
            .arg(&self.0)
            .status();
        assert!(mounted.unwrap().success());
    }
}

impl Drop for TmpfsMount {
    fn drop(&mut self) {
        best_effort(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}
