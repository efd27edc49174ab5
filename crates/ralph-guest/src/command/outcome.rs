//! The outcome of a command.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The source of an output chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The way a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// Exited with this code.
    Exited(i32),
    /// Killed by this signal, which was not sent by the supervisor.
    Signalled(i32),
    /// Killed with its tree at the timeout.
    TimedOut,
    /// Killed with its tree because it printed too much.
    OutputLimit,
    /// Killed with its tree because it filled the disk.
    DiskLimit,
    /// A process of its tree was killed for lack of memory, regardless of the exit code.
    OutOfMemory,
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutcome {
    pub ended: CommandEnd,
    pub duration: Duration,
    /// Bytes printed on standard output, including those beyond the limit.
    pub stdout_bytes: u64,
    /// Bytes printed on standard error, including those beyond the limit.
    pub stderr_bytes: u64,
    /// Whether a process of its tree could not start another one because of the limit.
    pub process_limit: bool,
}
