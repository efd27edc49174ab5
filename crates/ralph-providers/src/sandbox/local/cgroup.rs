//! Control groups of local sandboxes: limits for all processes of a sandbox together.
//!
//! Both versions are supported. In version 1, memory and processes have separate hierarchies. In
//! version 2, a group that has processes cannot have limited children, so the sandbox's group is a
//! sibling of ralph's own group, if systemd delegates that to the user.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ralph_guest::cgroup::Cgroup;
use ralph_guest::command::SandboxName;
use ralph_guest::{available, best_effort};

use super::provider::LocalLimits;

/// The parent directories for new control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CgroupParents {
    /// Separate ones for memory and processes.
    Version1 { memory: PathBuf, processes: PathBuf },
    /// A common one.
    Version2(PathBuf),
}

impl CgroupParents {
    /// Finds the parent directories for new groups. With version 1 they may not be writable.
    pub(super) fn find() -> Option<Self> {
        let groups = available(fs::read_to_string("/proc/self/cgroup"))?;
        let mounts = available(fs::read_to_string("/proc/self/mountinfo"))?;
        let directory_of = |controller: &str| cgroup_directory(&groups, &mounts, controller);
        if let (Some(memory), Some(processes)) = (directory_of("memory"), directory_of("pids")) {
            return Some(Self::Version1 { memory, processes });
        }
        let own = directory_of("")?;
        let parents = [own.parent().map(Path::to_owned), Some(own)];
        let mut parents = parents.into_iter().flatten();
        parents
            .find(|parent| is_delegated(parent))
            .map(Self::Version2)
    }

    /// Removes the groups that a killed process has left behind for a sandbox.
    pub(super) fn clear(&self, id: &str) {
        let parents = match self {
            Self::Version1 { memory, processes } => vec![memory, processes],
            Self::Version2(parent) => vec![parent],
        };
        let prefix = prefix(id);
        for entry in parents
            .into_iter()
            .filter_map(|parent| available(fs::read_dir(parent)))
            .flatten()
        {
            let ours =
                |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            if let Some(entry) = available(entry).filter(|entry| ours(&entry.file_name())) {
                best_effort(fs::remove_dir(entry.path()));
            }
        }
    }

    /// Creates the group of a sandbox and sets its limits.
    pub(super) fn create(&self, id: &str, limits: LocalLimits) -> io::Result<SandboxCgroup> {
        let name = format!("{}{}", prefix(id), SandboxName::random());
        let LocalLimits { memory, processes } = limits;
        let (bytes, number) = (memory.to_string(), processes.to_string());
        let settings: Vec<(PathBuf, Vec<(&str, &str)>)> = match self {
            Self::Version1 {
                memory,
                processes: pids,
            } => vec![
                (memory.join(&name), vec![("memory.limit_in_bytes", &bytes)]),
                (pids.join(&name), vec![("pids.max", &number)]),
            ],
            Self::Version2(parent) => vec![(
                parent.join(&name),
                vec![("memory.max", &bytes), ("pids.max", &number)],
            )],
        };
        let group = SandboxCgroup::create(settings.iter().map(|(path, _)| path.clone()).collect())?;
        for (directory, values) in &settings {
            for (file, value) in values {
                fs::write(directory.join(file), value)?;
            }
            // Swapped memory would delay the limit. Without swap, or without its accounting, there is
            // nothing to set.
            best_effort(fs::write(
                directory.join("memory.memsw.limit_in_bytes"),
                &bytes,
            ));
            best_effort(fs::write(directory.join("memory.swap.max"), "0"));
        }
        Ok(group)
    }
}

fn prefix(id: &str) -> String {
    format!("ralph-{id}-")
}

/// The control group of one sandbox. Removed on drop.
#[derive(Debug)]
pub(super) struct SandboxCgroup {
    directories: Vec<PathBuf>,
    pub(super) counters: Cgroup,
}

impl SandboxCgroup {
    fn create(directories: Vec<PathBuf>) -> io::Result<Self> {
        let mut group = Self {
            directories: Vec::new(),
            counters: Cgroup::default(),
        };
        for directory in directories {
            fs::create_dir(&directory)?;
            group.directories.push(directory);
        }
        group.counters = Cgroup::from_directories(&group.directories);
        Ok(group)
    }

    /// Returns its directories.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        self.directories.clone()
    }
}

impl Drop for SandboxCgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            // A group that still has processes cannot be removed.
            best_effort(fs::remove_dir(directory));
        }
    }
}

/// Returns this process's group directory in the hierarchy of a controller; an empty name means
/// version 2.
fn cgroup_directory(groups: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let has = fields.next()?.split(',').any(|name| name == controller);
        fields.next().filter(|_| has)
    })?;
    let (root, point) = mounts
        .lines()
        .find_map(|line| parse_mount(line, controller))?;
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    Some(Path::new(point).join(below))
}

/// Returns the root and mount point of a controller's hierarchy, if a mountinfo line describes it.
fn parse_mount<'a>(line: &'a str, controller: &str) -> Option<(&'a str, &'a str)> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point) = (mount.next()?, mount.next()?);
    let mut system = system.split(' ');
    let kind = system.next()?;
    let options = system.nth(1)?;
    let is_match = if controller.is_empty() {
        kind == "cgroup2"
    } else {
        kind == "cgroup" && options.split(',').any(|option| option == controller)
    };
    is_match.then_some((root, point))
}

/// Returns whether groups with limits can be created in a version 2 directory.
fn is_delegated(parent: &Path) -> bool {
    let Ok(enabled) = fs::read_to_string(parent.join("cgroup.subtree_control")) else {
        return false;
    };
    ["memory", "pids"]
        .iter()
        .all(|controller| enabled.split_whitespace().any(|name| name == *controller))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 18 0:20 / /sys rw,nosuid - sysfs sysfs rw
30 24 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
31 24 0:27 /docker/abc /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids
32 24 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
";

    #[test]
    fn the_group_of_this_process_is_found_in_each_hierarchy() {
        let groups =
            "5:devices:/\n4:memory:/user/a\n3:cpu,pids:/docker/abc\n0::/user.slice/b.scope\n";
        let of = |controller| cgroup_directory(groups, MOUNTS, controller);
        assert_eq!(of("memory"), Some("/sys/fs/cgroup/memory/user/a".into()));
        assert_eq!(of("pids"), Some("/sys/fs/cgroup/pids/".into()));
        assert_eq!(
            of(""),
            Some("/sys/fs/cgroup/unified/user.slice/b.scope".into())
        );
        assert_eq!(of("cpuset"), None);
    }
}
