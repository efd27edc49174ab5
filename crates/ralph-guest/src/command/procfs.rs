//! Reads processes from `/proc`. A process that exits meanwhile is treated as missing.

use std::fs;
use std::io::Read as _;

use rustix::process::Pid;

use super::mark::CommandMark;
use crate::available;

/// The maximum size of a process environment that is read, in bytes.
const ENVIRONMENT_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) pid: Pid,
    /// `None` for the first process, and for one whose parent is in another namespace.
    pub(super) parent: Option<Pid>,
    /// `None` for a process that is just being reaped.
    pub(super) group: Option<Pid>,
    /// Whether it has exited but was not reaped.
    pub(super) is_zombie: bool,
}

/// Returns all processes in `/proc`.
pub(super) fn processes() -> Vec<ProcessInfo> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let name = available(entry)?.file_name();
            let name = name.to_str()?;
            name.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
            parse_stat(&available(fs::read(format!("/proc/{name}/stat")))?)
        })
        .collect()
}

/// Parses a line `pid (command) state parent group …`; the command may contain any bytes.
fn parse_stat(line: &[u8]) -> Option<ProcessInfo> {
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    let pid = available(std::str::from_utf8(&line[..open]))?;
    let rest = available(std::str::from_utf8(line.get(close + 1..)?))?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    Some(ProcessInfo {
        pid: parse_pid(pid.trim())?,
        parent: parse_pid(fields.next()?),
        group: parse_pid(fields.next()?),
        is_zombie: matches!(state, "Z" | "X"),
    })
}

/// Parses a process ID; 0 and -1 mean that there is none.
fn parse_pid(text: &str) -> Option<Pid> {
    let number = available(text.parse()).filter(|number| *number > 0)?;
    Pid::from_raw(number)
}

/// Returns the mark of a process; `None` if its file locks are not limited, or it is gone.
pub(super) fn read_mark(pid: Pid) -> Option<CommandMark> {
    let limits = available(fs::read_to_string(format!(
        "/proc/{}/limits",
        pid.as_raw_pid()
    )))?;
    parse_limits(&limits)
}

fn parse_limits(limits: &str) -> Option<CommandMark> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    // The second value is the hard limit, which an unprivileged user can only lower.
    let hard = line.split_ascii_whitespace().nth(1)?;
    available(hard.parse()).map(CommandMark::from_limit)
}

/// Returns whether a process was started with this `NAME=value`.
pub(super) fn has_variable(pid: Pid, variable: &str) -> bool {
    let mut environment = Vec::new();
    fs::File::open(format!("/proc/{}/environ", pid.as_raw_pid()))
        .and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment))
        .is_ok_and(|_| {
            environment
                .split(|b| *b == 0)
                .any(|entry| entry == variable.as_bytes())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_may_look_like_stat_fields() {
        let line = b"42 (a) Z 1 (b)\xff) S 7 41 40 0 -1 4194560 1 0";
        assert_eq!(
            parse_stat(line),
            Some(ProcessInfo {
                pid: Pid::from_raw(42).unwrap(),
                parent: Pid::from_raw(7),
                group: Pid::from_raw(41),
                is_zombie: false,
            })
        );
        assert_eq!(parse_stat(b"42 (a"), None);
        assert_eq!(
            parse_stat(b"42 (a) X 0 -1 -1 0 -1"),
            Some(ProcessInfo {
                pid: Pid::from_raw(42).unwrap(),
                parent: None,
                group: None,
                is_zombie: true,
            })
        );
    }

    #[test]
    fn a_mark_is_the_hard_limit() {
        let table = |soft, hard| {
            format!(
                "Limit   Soft Limit  Hard Limit  Units\nMax file locks   {soft}  {hard}  locks\n"
            )
        };
        assert_eq!(
            parse_limits(&table("1", "77")),
            Some(CommandMark::from_limit(77))
        );
        assert_eq!(parse_limits(&table("unlimited", "unlimited")), None);
        assert_eq!(parse_limits(""), None);
    }

    #[test]
    fn this_process_is_listed() {
        let own = rustix::process::getpid();
        let found = processes().into_iter().find(|p| p.pid == own);
        assert_eq!(
            found,
            Some(ProcessInfo {
                pid: own,
                parent: rustix::process::getppid(),
                group: Some(rustix::process::getpgrp()),
                is_zombie: false,
            })
        );
    }
}
