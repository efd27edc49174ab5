//! The interface between ralph and its launcher.

use std::io;
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The exit code of a launcher that did not start its command and wrote a [`LaunchFailure`].
pub const LAUNCH_FAILED: i32 = 125;

/// The way directories are hidden from a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hiding {
    /// An empty directory is mounted over each of them, in the command's own mount namespace.
    MountNamespace,
    /// The kernel denies access to them.
    Landlock,
    /// They are not hidden.
    Unavailable,
}

/// The settings that a launcher applies before it executes the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSettings {
    pub hiding: Hiding,
    /// Directories that the command cannot access, except for `sandbox`.
    pub hidden: Vec<PathBuf>,
    /// The sandbox directory. The working directory is this directory or below it.
    pub sandbox: PathBuf,
    /// The directory in the sandbox that becomes `/tmp` and `/var/tmp`.
    pub tmp: PathBuf,
    /// Directories below `/tmp` or `/var/tmp` that stay accessible.
    pub kept: Vec<PathBuf>,
    /// Whether the command is prevented from signalling processes that it did not start.
    pub scope_signals: bool,
    /// The control groups that the command joins.
    pub cgroups: Vec<PathBuf>,
    /// The limit on private memory per process, in bytes.
    pub process_memory: Option<u64>,
    /// The limit on processes in the command's own user namespace.
    pub processes: Option<u64>,
    /// The command mark, as a limit value.
    pub mark: u64,
    /// The file for a failure report.
    pub report: PathBuf,
}

impl LaunchSettings {
    /// Returns the hidden directories that exist, without links. A directory that this process may
    /// not access is left out: the command has no more rights.
    pub(super) fn existing_hidden(&self) -> io::Result<Vec<PathBuf>> {
        let mut existing = Vec::new();
        for directory in &self.hidden {
            match directory.canonicalize() {
                Ok(directory) => existing.push(directory),
                Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(existing)
    }
}

/// The reason a launcher did not start its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFailure {
    /// The step that failed; `None` if the program itself could not be started.
    pub step: Option<String>,
    /// The error number of the system, if any.
    pub os_error: Option<i32>,
    pub message: String,
}

impl LaunchFailure {
    pub(super) fn new(step: &str, error: &io::Error) -> Self {
        Self {
            step: (!step.is_empty()).then(|| step.to_owned()),
            os_error: error.raw_os_error(),
            message: error.to_string(),
        }
    }

    /// Returns the error as if the program had been started directly.
    pub fn to_io_error(&self) -> io::Error {
        match (&self.step, self.os_error) {
            (None, Some(number)) => io::Error::from_raw_os_error(number),
            (Some(step), _) => io::Error::other(format!("cannot {step}: {}", self.message)),
            (None, None) => io::Error::other(self.message.clone()),
        }
    }
}
