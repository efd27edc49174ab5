//! How a command ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which stream a chunk of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, not sent by us.
    Signalled(i32),
    /// Its tree was killed at the timeout.
    TimedOut,
    /// Its tree was killed because it printed too much.
    OutputLimit,
    /// Its tree was killed because it filled the disk.
    DiskLimit,
    /// Something in its tree was killed for lack of memory, whatever the exit code says.
    OutOfMemory,
}

/// The facts about a command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutcome {
    /// How it ended.
    pub ended: CommandEnd,
    /// How long it took.
    pub duration: Duration,
    /// How many bytes it printed on standard output, handed on or not.
    pub stdout_bytes: u64,
    /// How many bytes it printed on standard error, handed on or not.
    pub stderr_bytes: u64,
    /// Something in its tree could not start another process, because there were too many.
    pub process_limit: bool,
}
