//! What the kernel has refused to this container so far.

use std::fs;

/// Counters that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counters {
    /// Processes that were killed for lack of memory.
    pub(super) out_of_memory: u64,
    /// Attempts to start one process too many.
    pub(super) too_many_processes: u64,
}

impl Counters {
    /// Reads the counters of the container. Where there are none, they stay zero.
    pub(super) fn read() -> Self {
        let field = |files: [&str; 2], name| {
            files
                .iter()
                .find_map(|file| value(&fs::read_to_string(file).ok()?, name))
                .unwrap_or(0)
        };
        Self {
            out_of_memory: field(
                [
                    "/sys/fs/cgroup/memory.events",
                    "/sys/fs/cgroup/memory/memory.oom_control",
                ],
                "oom_kill",
            ),
            too_many_processes: field(
                [
                    "/sys/fs/cgroup/pids.events",
                    "/sys/fs/cgroup/pids/pids.events",
                ],
                "max",
            ),
        }
    }
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
