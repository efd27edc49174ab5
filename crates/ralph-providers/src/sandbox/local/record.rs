//! The file beside a sandbox's directory that says what it is marked with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ralph_core::ports::{Labels, SandboxSpec};
use ralph_guest::command::Name;
use serde::{Deserialize, Serialize};

use super::name;

const SUFFIX: &str = ".json";

/// What is known about a sandbox apart from its files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) labels: Labels,
    pub(super) env: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn of(spec: &SandboxSpec) -> Self {
        Self {
            labels: spec.labels.clone(),
            env: spec.env.clone(),
        }
    }

    /// Writes the record so that it survives a power cut.
    pub(super) fn store(&self, root: &Path, name: Name) -> io::Result<()> {
        let temporary = temporary(root, name);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&temporary, path(root, name))?;
        File::open(root)?.sync_all()
    }

    /// Reads the record of a sandbox. One that is missing or damaged, as after a crash in the middle
    /// of making the sandbox, says nothing: the sandbox can still be removed.
    pub(super) fn load(root: &Path, name: Name) -> io::Result<Self> {
        for file in [path(root, name), temporary(root, name)] {
            match fs::read(file) {
                Ok(bytes) => return Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::default())
    }

    /// Removes the record of a sandbox, also one that a crash kept from getting its name; a missing
    /// one is fine.
    pub(super) fn remove(root: &Path, name: Name) -> io::Result<()> {
        for file in [path(root, name), temporary(root, name)] {
            match fs::remove_file(file) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Returns the names of all sandboxes that have a directory or a record.
    pub(super) fn names(root: &Path) -> io::Result<BTreeSet<Name>> {
        let entries = match fs::read_dir(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let mut names = BTreeSet::new();
        for entry in entries {
            let file = entry?.file_name();
            let id = file.to_str().unwrap_or_default().trim_start_matches('.');
            names.extend(name::parse(id.strip_suffix(SUFFIX).unwrap_or(id)));
        }
        Ok(names)
    }
}

/// Returns where a record is written before it gets its name.
fn temporary(root: &Path, name: Name) -> PathBuf {
    root.join(format!(".{}{SUFFIX}", name::id(name)))
}

fn path(root: &Path, name: Name) -> PathBuf {
    root.join(format!("{}{SUFFIX}", name::id(name)))
}
