//! Kernel counters of the resources refused to a control group.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::available;
use crate::command::{CommandEnd, CommandOutcome};

/// Monotonic counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupCounters {
    /// Processes killed for lack of memory.
    pub out_of_memory: u64,
    /// Process starts refused by the limit.
    pub too_many_processes: u64,
}

impl CgroupCounters {
    /// Returns the outcome of a command, corrected by the difference to the counters `before` its
    /// start: an exit code does not show that a process in a pipeline was killed.
    pub fn apply_to(self, outcome: CommandOutcome, before: Self) -> CommandOutcome {
        let was_oom_killed = self.out_of_memory > before.out_of_memory;
        let ended = match outcome.ended {
            CommandEnd::Exited(_) | CommandEnd::Signalled(_) if was_oom_killed => {
                CommandEnd::OutOfMemory
            }
            ended @ (CommandEnd::Exited(_)
            | CommandEnd::Signalled(_)
            | CommandEnd::TimedOut
            | CommandEnd::OutputLimit
            | CommandEnd::DiskLimit
            | CommandEnd::OutOfMemory) => ended,
        };
        CommandOutcome {
            ended,
            process_limit: self.too_many_processes > before.too_many_processes,
            ..outcome
        }
    }
}

/// The kernel counters of one control group. The files stay open because they are read before and
/// after every command.
#[derive(Debug, Default)]
pub struct Cgroup {
    memory: Option<File>,
    processes: Option<File>,
}

impl Cgroup {
    /// Opens the counters of this process's container. Missing counters stay zero.
    pub fn open() -> Self {
        let first = |files: [&str; 2]| files.iter().find_map(|file| available(File::open(file)));
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

    /// Opens the counters in these control group directories.
    pub fn from_directories(directories: &[PathBuf]) -> Self {
        let first = |names: &[&str]| {
            directories.iter().find_map(|directory| {
                let mut names = names.iter();
                names.find_map(|name| available(File::open(directory.join(name))))
            })
        };
        Self {
            memory: first(&["memory.events", "memory.oom_control"]),
            processes: first(&["pids.events"]),
        }
    }

    /// Reads the counters.
    pub fn counters(&self) -> CgroupCounters {
        CgroupCounters {
            out_of_memory: read_counter(self.memory.as_ref(), "oom_kill"),
            too_many_processes: read_counter(self.processes.as_ref(), "max"),
        }
    }
}

fn read_counter(file: Option<&File>, name: &str) -> u64 {
    let mut text = [0; 512];
    file.and_then(|file| available(file.read_at(&mut text, 0)))
        .and_then(|length| parse_value(available(std::str::from_utf8(&text[..length]))?, name))
        .unwrap_or(0)
}

/// Returns the number on the line that starts with a name.
fn parse_value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, number) = line.split_once(' ')?;
        (key == name).then(|| available(number.trim().parse()))?
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(parse_value(text, "oom_kill"), Some(3));
        assert_eq!(parse_value(text, "max"), None);
        assert_eq!(parse_value("max 12", "max"), Some(12));
    }

    #[test]
    fn an_out_of_memory_kill_is_never_a_success() {
        let outcome = |ended, process_limit| CommandOutcome {
            ended,
            duration: Duration::ZERO,
            stdout_bytes: 0,
            stderr_bytes: 0,
            process_limit,
        };
        let none = CgroupCounters::default();
        let oom_killed = CgroupCounters {
            out_of_memory: 1,
            too_many_processes: 0,
        };
        let refused_start = CgroupCounters {
            out_of_memory: 0,
            too_many_processes: 9,
        };
        for (ended, after, expected) in [
            (
                CommandEnd::Exited(0),
                none,
                outcome(CommandEnd::Exited(0), false),
            ),
            (
                CommandEnd::Exited(0),
                oom_killed,
                outcome(CommandEnd::OutOfMemory, false),
            ),
            (
                CommandEnd::Signalled(9),
                oom_killed,
                outcome(CommandEnd::OutOfMemory, false),
            ),
            (
                CommandEnd::TimedOut,
                oom_killed,
                outcome(CommandEnd::TimedOut, false),
            ),
            (
                CommandEnd::Exited(2),
                refused_start,
                outcome(CommandEnd::Exited(2), true),
            ),
        ] {
            assert_eq!(after.apply_to(outcome(ended, false), none), expected);
        }
    }
}
