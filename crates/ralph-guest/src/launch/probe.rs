//! Reports what a launcher can do on this machine.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::{landlock, namespace};
use crate::available;

/// How a process can mount in a namespace of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountAbility {
    /// It may mount anyway.
    Privileged,
    /// In a user namespace, whose processes are counted apart.
    UserNamespace,
}

/// What a launcher can do on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherSupport {
    /// It can join the control groups that were named.
    pub cgroups: bool,
    /// How it can mount in a namespace of its own, if it can.
    pub mounts: Option<MountAbility>,
    /// It can deny access to files.
    pub landlock: bool,
    /// It can keep a command from signalling processes that the command did not start.
    pub signals: bool,
}

impl LauncherSupport {
    /// Tries everything out and prints what worked. The arguments are control groups to join.
    #[expect(clippy::print_stdout, reason = "this is what it is started for")]
    pub fn probe_and_print(mut cgroups: impl Iterator<Item = OsString>) -> ExitCode {
        let join =
            |cgroup: OsString| fs::write(PathBuf::from(cgroup).join("cgroup.procs"), "0").is_ok();
        let available = Self {
            cgroups: cgroups.all(join),
            landlock: landlock::can_restrict_files(),
            signals: landlock::can_scope_signals(),
            // Last, because nothing works as before afterwards.
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
