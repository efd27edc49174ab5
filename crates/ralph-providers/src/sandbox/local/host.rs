//! The parts of the host that a command can use: programs, toolchains, a new session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use ralph_guest::command;

/// The parts of the host that a command can use.
#[derive(Debug, Clone)]
pub(super) struct HostEnvironment {
    /// The value of `PATH`.
    pub(super) search_path: OsString,
    /// Variables with the locations of toolchains. Needed because `HOME` is the sandbox's.
    pub(super) toolchains: BTreeMap<String, String>,
    /// The `setsid` program, if it is needed.
    pub(super) setsid: Option<PathBuf>,
}

impl HostEnvironment {
    pub(super) fn new(search_path: OsString) -> Self {
        // A command that shares ralph's terminal could access it through `/dev/tty`.
        let has_terminal = File::open("/dev/tty").is_ok();
        let setsid = has_terminal
            .then(|| command::find_program(&search_path, "setsid"))
            .flatten();
        Self {
            search_path,
            toolchains: BTreeMap::new(),
            setsid,
        }
    }

    pub(super) fn has_program(&self, program: &str) -> bool {
        command::find_program(&self.search_path, program).is_some()
    }
}
