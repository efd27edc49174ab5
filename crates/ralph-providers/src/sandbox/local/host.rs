//! What a command gets from the machine it runs on: programs, toolchains, a session of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use ralph_guest::command;

/// What a command gets from the machine it runs on.
#[derive(Debug, Clone)]
pub(super) struct HostEnvironment {
    /// Where programs are found.
    pub(super) search_path: OsString,
    /// Variables that say where toolchains live. `HOME` is the sandbox's, so they are not found otherwise.
    pub(super) toolchains: BTreeMap<String, String>,
    /// The program that starts another one in a new session, where that is needed.
    pub(super) setsid: Option<PathBuf>,
}

impl HostEnvironment {
    pub(super) fn new(search_path: OsString) -> Self {
        // A command that shares our terminal could write to it and read from it by `/dev/tty`.
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
