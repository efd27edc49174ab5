//! What the kernel has refused to this container so far.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Counters that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counters {
    /// Processes that were killed for lack of memory.
    pub(super) out_of_memory: u64,
    /// Attempts to start one process too many.
    pub(super) too_many_processes: u64,
}

/// The kernel's counters of this container. The files stay open: they are read before and after
/// every command.
#[derive(Debug, Default)]
pub(super) struct Cgroup {
    memory: Option<File>,
    processes: Option<File>,
}

impl Cgroup {
    /// Finds the counters. Where there are none, they stay zero.
    pub(super) fn open() -> Self {
        let first = |files: [&str; 2]| files.iter().find_map(|file| File::open(file).ok());
        Self {
            memory: first([
                "/sys/fs/cgroup/memory.events",
                "/sys/fs/cgroup/memory/memory.oom_control",
            ]),
            processes: first([
                "/sys/fs/cgroup/pids.events",
                "/sys/fs/cgroup/pids/pids.events",
            ]),
        }
    }

    /// Reads the counters.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            out_of_memory: counter(self.memory.as_ref(), "oom_kill"),
            too_many_processes: counter(self.processes.as_ref(), "max"),
        }
    }
}

fn counter(file: Option<&File>, name: &str) -> u64 {
    let mut text = [0; 512];
    file.and_then(|file| file.read_at(&mut text, 0).ok())
        .and_then(|length| value(std::str::from_utf8(&text[..length]).ok()?, name))
        .unwrap_or(0)
}

/// Finds the number on the line that begins with a name.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, number) = line.split_once(' ')?;
        (found == name).then(|| number.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(value(text, "oom_kill"), Some(3));
        assert_eq!(value(text, "max"), None);
        assert_eq!(value("max 12", "max"), Some(12));
    }
}
