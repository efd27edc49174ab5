//! Identifies a process of ralph that owns something, and checks whether it is alive.

use std::fs;

use ralph_core::parse_value;
use ralph_guest::available;
use serde::{Deserialize, Serialize};

/// Identifies a process uniquely, even if its pid is reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerProcess {
    pid: u32,
    /// The start time from the kernel, in clock ticks.
    started: Option<u64>,
    /// The boot id of the machine.
    boot: String,
    /// The machine id.
    machine: String,
}

impl OwnerProcess {
    /// Returns the current process.
    pub fn current() -> Self {
        Self::with_pid(std::process::id())
    }

    /// Returns the process of this machine that has a process id now.
    pub fn with_pid(pid: u32) -> Self {
        Self {
            pid,
            started: start_time(pid),
            boot: read_trimmed("/proc/sys/kernel/random/boot_id"),
            machine: read_trimmed("/etc/machine-id") + &read_trimmed("/proc/sys/kernel/hostname"),
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the process is known to have ended. Processes of other machines are unknown,
    /// and without `/proc` all processes are.
    pub fn is_dead(&self) -> bool {
        self.has_ended(&Self::current(), start_time(self.pid))
    }

    /// Compares the process with the current one and with the process that has its pid now.
    fn has_ended(&self, current: &Self, started_now: Option<u64>) -> bool {
        if self.machine != current.machine {
            return false;
        }
        let are_boots_known = !self.boot.is_empty() && !current.boot.is_empty();
        let are_starts_known = self.started.is_some() && current.started.is_some();
        (are_boots_known && self.boot != current.boot)
            || (are_starts_known && self.started != started_now)
    }
}

/// Returns the start time of a process; `None` if it does not exist.
fn start_time(pid: u32) -> Option<u64> {
    let stat = available(fs::read_to_string(format!("/proc/{pid}/stat")))?;
    let (_, fields) = stat.rsplit_once(')')?;
    parse_value(fields.split_ascii_whitespace().nth(19)?)
}

fn read_trimmed(file: &str) -> String {
    // A value that is not available counts as empty and is equal for all processes.
    available(fs::read_to_string(file))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends() {
        let this = OwnerProcess::current();
        assert!(this.started.is_some(), "{this:?}");
        assert!(!this.is_dead());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let other = OwnerProcess::with_pid(child.id());
        assert!(!other.is_dead());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_dead());
        let reused = OwnerProcess {
            started: Some(1),
            ..this.clone()
        };
        assert!(reused.is_dead());
        let before_a_restart = OwnerProcess {
            boot: "another".into(),
            ..this.clone()
        };
        assert!(before_a_restart.is_dead());
        let elsewhere = OwnerProcess {
            machine: "another".into(),
            ..other
        };
        assert!(!elsewhere.is_dead());
    }

    #[test]
    fn a_process_without_a_known_start_may_be_alive() {
        let known = OwnerProcess {
            pid: 1,
            started: Some(7),
            boot: "boot".into(),
            machine: "machine".into(),
        };
        let without_proc = OwnerProcess {
            started: None,
            boot: String::new(),
            ..known.clone()
        };
        assert!(!without_proc.has_ended(&known, None));
        assert!(!without_proc.has_ended(&without_proc, None));
        assert!(!known.has_ended(&without_proc, None));
        assert!(known.has_ended(&known, None));
        assert!(!known.has_ended(&known, Some(7)));
    }
}
