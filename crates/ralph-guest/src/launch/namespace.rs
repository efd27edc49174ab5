//! A mount namespace per command in which some directories are empty.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstat, openat, openat2, statvfs,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::process::{fchdir, getegid, geteuid};
use rustix::thread::UnshareFlags;

use super::probe::MountAbility;
use super::settings::LaunchSettings;
use super::start::{LaunchStepResult, in_step};
use crate::available;

/// The directories that every command gets a private version of.
const TMP_DIRECTORIES: [&str; 2] = ["/tmp", "/var/tmp"];
/// An empty directory that hides another one needs almost no memory.
const EMPTY_MOUNT_OPTIONS: &std::ffi::CStr = c"mode=0755,size=64k,nr_inodes=256";
const TMP_MOUNT_OPTIONS: &std::ffi::CStr = c"mode=1777";
const MOUNT_FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Enters a mount namespace and hides the directories.
pub(super) fn hide_directories(settings: &LaunchSettings) -> LaunchStepResult<()> {
    in_step("enter a mount namespace", enter_namespace())?;
    let opened = in_step("open the sandbox", OpenedDirectories::open(settings))?;
    let hidden = in_step("find the state directory", settings.existing_hidden())?;
    let hidden = outermost(hidden);
    let private = mount_private_tmp(settings, &opened);
    in_step("mount a private /tmp", private)?;
    for directory in &hidden {
        // A directory below a private /tmp is hidden already.
        if directory.exists() && !is_below_tmp(directory) {
            in_step("hide the state directory", mount_empty(directory))?;
        }
    }
    in_step("mount the sandbox", opened.bind_back(settings))?;
    for directory in hidden.iter().filter(|directory| !is_below_tmp(directory)) {
        in_step("hide the state directory", remount_read_only(directory))?;
    }
    for cgroup in &settings.cgroups {
        in_step("protect the control groups", protect_cgroup(cgroup))?;
    }
    in_step(
        "enter the working directory",
        opened.reenter_working_directory(settings),
    )
}

/// Tests whether mounts are possible.
pub(super) fn probe_mounts() -> io::Result<MountAbility> {
    let entered = enter_namespace()?;
    mount_empty(Path::new("/"))?;
    Ok(entered)
}

fn enter_namespace() -> io::Result<MountAbility> {
    let entered = match unshare(UnshareFlags::NEWNS) {
        Ok(()) => MountAbility::Privileged,
        Err(Errno::PERM) => {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
            MountAbility::UserNamespace
        }
        Err(error) => return Err(error.into()),
    };
    // Otherwise the mounts would also appear on the host.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    Ok(entered)
}

#[expect(
    deprecated,
    reason = "the alternative is unsafe only for unsharing the file table, which is not done here"
)]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}

/// Directories that have to be opened before a mount covers them.
struct OpenedDirectories {
    sandbox: OwnedFd,
    /// The path of the sandbox without links.
    path: PathBuf,
    tmp: OwnedFd,
    kept: Vec<(PathBuf, OwnedFd)>,
}

impl OpenedDirectories {
    fn open(settings: &LaunchSettings) -> io::Result<Self> {
        let kept = settings
            .kept
            .iter()
            .filter(|directory| is_below_tmp(directory));
        Ok(Self {
            sandbox: open_path(&settings.sandbox)?,
            path: settings.sandbox.canonicalize()?,
            tmp: open_path(&settings.tmp)?,
            kept: kept
                // A toolchain that is not there cannot be used either way.
                .filter_map(|directory| Some((directory.clone(), available(open_path(directory))?)))
                .collect(),
        })
    }

    /// Mounts the kept directories and the sandbox at their paths again.
    fn bind_back(&self, settings: &LaunchSettings) -> io::Result<()> {
        for (path, directory) in &self.kept {
            bind_mount(directory, path)?;
        }
        bind_mount(&self.sandbox, &settings.sandbox)
    }

    /// Re-enters the working directory through the new mounts, because the parents of the old one
    /// would still be accessible.
    fn reenter_working_directory(&self, settings: &LaunchSettings) -> io::Result<()> {
        let before = fstat(open_path(Path::new("."))?)?;
        let path = fs::read_link("/proc/self/cwd")?;
        let from = fs::read_link(format!("/proc/self/fd/{}", self.sandbox.as_raw_fd()))?;
        let below = path.strip_prefix(&from).map_err(io::Error::other)?;
        let below = if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        };
        let sandbox = open_path(&settings.sandbox)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let directory = openat2(&sandbox, below, flags, Mode::empty(), resolve)?;
        let after = fstat(&directory)?;
        if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino) {
            return Err(io::Error::other("the working directory was replaced"));
        }
        Ok(fchdir(directory)?)
    }
}

/// Mounts a private directory for temporary files.
fn mount_private_tmp(settings: &LaunchSettings, opened: &OpenedDirectories) -> io::Result<()> {
    for tmp in TMP_DIRECTORIES.map(Path::new) {
        // A link leads to the other directory or to another location.
        if !fs::symlink_metadata(tmp).is_ok_and(|metadata| metadata.is_dir()) {
            continue;
        }
        let kept = opened.kept.iter().map(|(path, _)| path);
        if kept
            .chain([&settings.sandbox, &opened.path])
            .any(|path| path.starts_with(tmp))
        {
            // Directories that stay accessible need mount points, which do not belong in the
            // sandbox's own files.
            mount("ralph", tmp, "tmpfs", MOUNT_FLAGS, TMP_MOUNT_OPTIONS)?;
        } else {
            mount_bind_recursive(fd_path(&opened.tmp), tmp)?;
        }
    }
    Ok(())
}

fn is_below_tmp(path: &Path) -> bool {
    TMP_DIRECTORIES.iter().any(|tmp| path.starts_with(tmp))
}

/// Returns the directories that are not below another one of them.
fn outermost(directories: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut outermost: Vec<PathBuf> = Vec::new();
    for directory in directories {
        if !outermost.iter().any(|above| directory.starts_with(above)) {
            outermost.retain(|below| !below.starts_with(&directory));
            outermost.push(directory);
        }
    }
    outermost
}

fn mount_empty(directory: &Path) -> io::Result<()> {
    Ok(mount(
        "ralph",
        directory,
        "tmpfs",
        MOUNT_FLAGS,
        EMPTY_MOUNT_OPTIONS,
    )?)
}

/// Makes an empty directory read-only after its mount points were created.
fn remount_read_only(directory: &Path) -> io::Result<()> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MOUNT_FLAGS;
    Ok(mount_remount(directory, flags, "")?)
}

fn bind_mount(directory: &OwnedFd, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    Ok(mount_bind_recursive(fd_path(directory), path)?)
}

/// Makes the control group hierarchy read-only, because a command that can write there could leave
/// its group.
fn protect_cgroup(cgroup: &Path) -> io::Result<()> {
    let Some(root) = cgroup_mount_point(cgroup) else {
        return Ok(());
    };
    mount_bind_recursive(root, root)?;
    let present = statvfs(root)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    // A user namespace may add restrictions to a mount and must repeat the existing ones.
    for (has, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
    ] {
        if present.contains(has) {
            flags |= flag;
        }
    }
    Ok(mount_remount(root, flags, "")?)
}

/// Returns the mount point of a control group: the topmost ancestor with the same device.
fn cgroup_mount_point(cgroup: &Path) -> Option<&Path> {
    let device = |path: &Path| Some(available(fstat(available(open_path(path))?))?.st_dev);
    let own = device(cgroup)?;
    cgroup
        .ancestors()
        .take_while(|path| device(path) == Some(own))
        .last()
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

fn fd_path(directory: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", directory.as_raw_fd())
}
