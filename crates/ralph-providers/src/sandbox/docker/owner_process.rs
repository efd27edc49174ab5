//! Identifies the process that created a sandbox, and checks whether it is alive.

use std::fs;

use ralph_core::parse_value;
use ralph_guest::available;
use serde::{Deserialize, Serialize};

/// Identifies a process uniquely, even if its pid is reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnerProcess {
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
    pub(super) fn current() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started: start_time(pid),
            boot: read_trimmed("/proc/sys/kernel/random/boot_id"),
            machine: read_trimmed("/etc/machine-id") + &read_trimmed("/proc/sys/kernel/hostname"),
        }
    }

    /// Returns whether the process is known to have ended. Processes of other machines are unknown.
    pub(super) fn is_dead(&self) -> bool {
        let here = Self::current();
        if self.machine != here.machine {
            return false;
        }
        self.boot != here.boot || self.started.is_none() || start_time(self.pid) != self.started
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
        let other = OwnerProcess {
            pid: child.id(),
            started: start_time(child.id()),
            ..this.clone()
        };
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
}
