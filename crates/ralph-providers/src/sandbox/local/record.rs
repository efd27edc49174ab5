//! The file beside a sandbox's directory that says what it is marked with.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ralph_core::parse_value;
use ralph_core::ports::{Labels, SandboxSpec};
use ralph_guest::best_effort;
use ralph_guest::command::SandboxName;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::name;
use crate::logged::logged;

const RECORD_SUFFIX: &str = ".json";
/// The end of the name of a record that is being written. Before it comes the number of the process.
const TEMPORARY_SUFFIX: &str = ".new";

/// What is known about a sandbox apart from its files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SandboxRecord {
    pub(super) labels: Labels,
    pub(super) env: BTreeMap<String, String>,
}

impl SandboxRecord {
    pub(super) fn from_spec(spec: &SandboxSpec) -> Self {
        Self {
            labels: spec.labels.clone(),
            env: spec.env.clone(),
        }
    }

    /// Writes the record so that it survives a power cut.
    pub(super) fn store(&self, root: &Path, name: SandboxName) -> io::Result<()> {
        let temporary = root.join(format!(
            ".{}.{}{TEMPORARY_SUFFIX}",
            name::sandbox_id(name),
            std::process::id()
        ));
        let stored = self
            .write(&temporary)
            .and_then(|()| fs::rename(&temporary, record_path(root, name)));
        if stored.is_err() {
            best_effort(fs::remove_file(&temporary));
        }
        stored?;
        File::open(root)?.sync_all()
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(file)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()
    }

    /// Reads the record of a sandbox. One that is missing or damaged, as after a crash in the middle
    /// of making the sandbox, says nothing: the sandbox can still be removed.
    pub(super) fn load(root: &Path, name: SandboxName) -> io::Result<Self> {
        for file in [record_path(root, name), legacy_temporary_path(root, name)] {
            match fs::read(file) {
                Ok(bytes) => {
                    let record = logged("read a sandbox record", serde_json::from_slice(&bytes));
                    return Ok(record.unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::default())
    }

    /// Removes the record of a sandbox, also one that a crash kept from getting its name; a missing
    /// one is fine. Neither the record nor a directory that was removed before comes back after a power cut.
    pub(super) fn remove(root: &Path, name: SandboxName) -> io::Result<()> {
        for file in [record_path(root, name), legacy_temporary_path(root, name)] {
            match fs::remove_file(file) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => result?,
            }
        }
        match File::open(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            directory => directory?.sync_all(),
        }
    }

    /// Returns the names of all sandboxes that have a directory or a record. A record that a killed process
    /// has not finished is removed: no sandbox was made for it yet.
    pub(super) fn names(root: &Path) -> io::Result<BTreeSet<SandboxName>> {
        let entries = match fs::read_dir(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let mut names = BTreeSet::new();
        for entry in entries {
            let entry = entry?;
            let file = entry.file_name();
            if is_abandoned(&file) {
                // Another process may have removed it just now.
                best_effort(fs::remove_file(entry.path()));
            }
            let id = file.to_str().unwrap_or_default().trim_start_matches('.');
            names.extend(name::parse_id(id.strip_suffix(RECORD_SUFFIX).unwrap_or(id)));
        }
        Ok(names)
    }
}

/// Tells whether a file is a record that was never finished, of a process that has ended.
fn is_abandoned(file: &OsStr) -> bool {
    let writer = file
        .to_str()
        .and_then(|name| name.strip_suffix(TEMPORARY_SUFFIX)?.rsplit_once('.'))
        .and_then(|(_, pid)| Pid::from_raw(parse_value(pid)?));
    writer.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Returns where earlier versions wrote a record before it got its name.
fn legacy_temporary_path(root: &Path, name: SandboxName) -> PathBuf {
    root.join(format!(".{}{RECORD_SUFFIX}", name::sandbox_id(name)))
}

fn record_path(root: &Path, name: SandboxName) -> PathBuf {
    root.join(format!("{}{RECORD_SUFFIX}", name::sandbox_id(name)))
}
