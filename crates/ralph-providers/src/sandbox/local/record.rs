//! The file next to a sandbox's directory with its labels.

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
/// The suffix of an unfinished record. It follows the process id.
const TEMPORARY_SUFFIX: &str = ".new";

/// The metadata of a sandbox.
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

    /// Writes the record durably.
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

    /// Reads the record of a sandbox. A missing or damaged one, as after a crash during creation,
    /// counts as empty: the sandbox can still be removed.
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

    /// Removes the record of a sandbox, including an unfinished one; a missing one is not an error.
    /// Neither the record nor a previously removed directory reappears after a power loss.
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

    /// Returns the names of all sandboxes that have a directory or a record. Removes unfinished
    /// records of killed processes: their sandboxes were never created.
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

/// Returns whether a file is an unfinished record of a process that has ended.
fn is_abandoned(file: &OsStr) -> bool {
    let writer = file
        .to_str()
        .and_then(|name| name.strip_suffix(TEMPORARY_SUFFIX)?.rsplit_once('.'))
        .and_then(|(_, pid)| Pid::from_raw(parse_value(pid)?));
    writer.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Returns the path of unfinished records of earlier versions.
fn legacy_temporary_path(root: &Path, name: SandboxName) -> PathBuf {
    root.join(format!(".{}{RECORD_SUFFIX}", name::sandbox_id(name)))
}

fn record_path(root: &Path, name: SandboxName) -> PathBuf {
    root.join(format!("{}{RECORD_SUFFIX}", name::sandbox_id(name)))
}
