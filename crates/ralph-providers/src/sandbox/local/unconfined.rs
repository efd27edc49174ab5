//! Systems other than Linux have no launcher: commands start directly.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ralph_core::ports::Confinement;
use ralph_guest::command::{CommandMark, SandboxName};

use super::cgroup::SandboxCgroup;
use super::provider::LocalLimits;

/// Never exists: there is no launcher on these systems.
#[derive(Debug)]
pub(super) enum Launcher {}

impl Launcher {
    pub(super) fn prepare(_limits: LocalLimits) -> io::Result<Self> {
        Err(ErrorKind::Unsupported.into())
    }

    pub(super) fn cgroup(&self, _id: &str) -> io::Result<Option<SandboxCgroup>> {
        match *self {}
    }

    pub(super) fn confinement(&self) -> Confinement {
        match *self {}
    }

    pub(super) fn invocation(
        &self,
        _launch: &Launch<'_>,
        _argv: &[String],
    ) -> io::Result<Vec<String>> {
        match *self {}
    }
}

/// A command to be launched.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) name: SandboxName,
    pub(super) mark: CommandMark,
    pub(super) sandbox: &'a Path,
    pub(super) hidden: &'a [PathBuf],
    pub(super) visible: &'a [PathBuf],
    pub(super) cgroup: Option<&'a SandboxCgroup>,
}

impl Launch<'_> {
    pub(super) fn take_failure(&self, _exit_code: i32) -> Option<io::Error> {
        None
    }
}

pub(super) fn required_directories<'a>(
    _search_path: &OsStr,
    _toolchains: impl Iterator<Item = &'a String>,
) -> Vec<PathBuf> {
    Vec::new()
}
