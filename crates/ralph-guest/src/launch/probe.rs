//! Reports the launcher features that this machine supports.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::{landlock, namespace};
use crate::available;

/// The way a process can mount in its own namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountAbility {
    /// Mounts are permitted without a user namespace.
    Privileged,
    /// In a user namespace, which has its own process count.
    UserNamespace,
}

/// The launcher features that this machine supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherSupport {
    /// Whether it can join the given control groups.
    pub cgroups: bool,
    /// `None` if it cannot mount in its own namespace.
    pub mounts: Option<MountAbility>,
    /// Whether it can deny access to files.
    pub landlock: bool,
    /// Whether it can prevent a command from signalling processes that the command did not start.
    pub signals: bool,
}

impl LauncherSupport {
    /// Tests all features and prints the result. The arguments are control groups to join.
    #[expect(
        clippy::print_stdout,
        reason = "the result is printed to standard output"
    )]
    pub fn probe_and_print(mut cgroups: impl Iterator<Item = OsString>) -> ExitCode {
        let join =
            |cgroup: OsString| fs::write(PathBuf::from(cgroup).join("cgroup.procs"), "0").is_ok();
        let available = Self {
            cgroups: cgroups.all(join),
            landlock: landlock::can_restrict_files(),
            signals: landlock::can_scope_signals(),
            // Last, because it changes the mounts of this process.
            mounts: available(namespace::probe_mounts()),
        };
        match serde_json::to_string(&available) {
            Ok(text) => {
                println!("{text}");
                ExitCode::SUCCESS
            }
            Err(_) => ExitCode::FAILURE,
        }
    }
}
