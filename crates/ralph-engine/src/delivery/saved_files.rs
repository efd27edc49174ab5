//! Selects the files of a run's directory that are saved under `refs/ralph/<task_id>`: the most
//! important first, within fixed limits.

use std::fs;
use std::io;
use std::path::Path;

use ralph_core::id::{Digest, RunId};
use ralph_core::run::RunStatus;
use serde::{Deserialize, Serialize};

use crate::durable::StoreError;
use crate::journal::Journal;

/// The name of the manifest in a snapshot.
pub(crate) const SNAPSHOT_FILE: &str = "snapshot.json";

/// The files and directories without which a run cannot be rebuilt. Only the limit of all files
/// applies to them.
const ESSENTIAL: [&str; 3] = ["journal.jsonl", "ralph_task.md", "contracts"];
/// The other files and directories that come before the iterations.
const FIRST: [&str; 2] = ["files", "egress.jsonl"];
const ITERATIONS: &str = "iterations";

/// The largest other file that is saved.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The limit of all saved files together.
const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// The most saved files.
const MAX_FILES: usize = 5_000;
/// The most omitted files that the manifest names.
const MAX_NAMED: usize = 200;

/// The files of one snapshot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SavedFiles {
    /// Relative to the run's directory.
    pub(crate) paths: Vec<String>,
    left_out: Vec<String>,
    bytes: u64,
}

/// Describes a snapshot: its run, the end of its journal and the files that did not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotManifest {
    pub run: RunId,
    /// The status that the run has or is about to get.
    pub status: String,
    /// The number of the journal's last record.
    pub seq: u64,
    /// The digest of the journal's last record.
    pub sha256: Digest,
    /// The first omitted files, the most important first.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The number of all omitted files.
    #[serde(default)]
    pub left_out_count: usize,
}

impl SnapshotManifest {
    pub(crate) fn new(journal: &Journal, status: &RunStatus, selected: &SavedFiles) -> Self {
        Self {
            status: status.as_str().to_owned(),
            run: journal.state().plan.run.clone(),
            seq: journal.state().seq,
            sha256: journal.last_digest().clone(),
            left_out: selected.left_out.iter().take(MAX_NAMED).cloned().collect(),
            left_out_count: selected.left_out.len(),
        }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::json!(self).to_string() + "\n"
    }
}

impl SavedFiles {
    /// Selects the files of a run's directory; those of the newest iterations before older ones.
    pub(crate) fn select(root: &Path) -> Result<Self, StoreError> {
        let mut selected = Self::default();
        for name in ESSENTIAL.into_iter().chain(FIRST) {
            selected.add(root, name)?;
        }
        let mut iterations = entries(&root.join(ITERATIONS))?;
        // `12.open` belongs to iteration 12.
        iterations.sort_by_key(|name| {
            let number = name.split('.').next().unwrap_or_default();
            std::cmp::Reverse(number.parse::<u32>().unwrap_or(0))
        });
        for name in iterations {
            selected.add(root, &format!("{ITERATIONS}/{name}"))?;
        }
        Ok(selected)
    }

    /// Returns the omitted files without which the run cannot be rebuilt.
    pub(crate) fn omitted_essentials(&self) -> impl Iterator<Item = &str> {
        let left_out = self.left_out.iter().map(String::as_str);
        left_out.filter(|path| is_essential(path))
    }

    /// Adds a file, or all files below a directory, in the order of their names. Only ralph writes the
    /// directory, so anything but a file or a directory is ignored.
    fn add(&mut self, root: &Path, path: &str) -> Result<(), StoreError> {
        let full = root.join(path);
        let metadata = match fs::symlink_metadata(&full) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StoreError::when("inspect", &full)(error)),
        };
        if metadata.is_dir() {
            for name in entries(&full)? {
                self.add(root, &format!("{path}/{name}"))?;
            }
        } else if metadata.is_file() {
            self.add_file(path, metadata.len());
        }
        Ok(())
    }

    fn add_file(&mut self, path: &str, bytes: u64) {
        let fits = (bytes <= MAX_FILE_BYTES || is_essential(path))
            && self.bytes + bytes <= MAX_TOTAL_BYTES
            && self.paths.len() < MAX_FILES;
        if fits {
            self.bytes += bytes;
            self.paths.push(path.to_owned());
        } else {
            self.left_out.push(path.to_owned());
        }
    }
}

fn is_essential(path: &str) -> bool {
    ESSENTIAL.contains(&path.split('/').next().unwrap_or(path))
}

/// Returns the names in a directory, sorted; none if it does not exist.
fn entries(directory: &Path) -> Result<Vec<String>, StoreError> {
    let failed = StoreError::when("list", directory);
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let names: io::Result<Vec<String>> = listed
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect();
    let mut names = names.map_err(failed)?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, bytes: u64) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Sparse, so a large file costs nothing.
        fs::File::create(path).unwrap().set_len(bytes).unwrap();
    }

    #[test]
    fn the_newest_iterations_are_saved_first_within_the_limits() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for file in [
            "journal.jsonl",
            "ralph_task.md",
            "files/progress.md",
            "lock",
        ] {
            write(root, file, 10);
        }
        for number in ["2", "9", "10", "11.open"] {
            write(root, &format!("iterations/{number}/prompt.md"), 15 << 20);
        }
        for number in 3..=6 {
            write(root, &format!("iterations/{number}/prompt.md"), 2 << 20);
        }
        write(root, "iterations/10/git_diff.patch", MAX_FILE_BYTES + 1);
        std::os::unix::fs::symlink("/etc/passwd", root.join("files/link")).unwrap();
        let selected = SavedFiles::select(root).unwrap();
        let expected = [
            "journal.jsonl",
            "ralph_task.md",
            "files/progress.md",
            "iterations/11.open/prompt.md",
            "iterations/10/prompt.md",
            "iterations/9/prompt.md",
            "iterations/6/prompt.md",
            "iterations/5/prompt.md",
            "iterations/4/prompt.md",
            "iterations/3/prompt.md",
        ];
        assert_eq!(selected.paths, expected);
        let left_out = ["iterations/10/git_diff.patch", "iterations/2/prompt.md"];
        assert_eq!(selected.left_out, left_out);
    }

    #[test]
    fn only_the_total_limits_the_files_that_a_run_is_rebuilt_from() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        write(root, "journal.jsonl", 40 << 20);
        write(root, "contracts/a.md", 20 << 20);
        write(root, "contracts/b.md", 20 << 20);
        write(root, "files/errors.log", MAX_FILE_BYTES + 1);
        let selected = SavedFiles::select(root).unwrap();
        assert_eq!(selected.paths, ["journal.jsonl", "contracts/a.md"]);
        let omitted: Vec<&str> = selected.omitted_essentials().collect();
        assert_eq!(omitted, ["contracts/b.md"]);
    }

    #[test]
    fn missing_files_are_not_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let selected = SavedFiles::select(directory.path()).unwrap();
        assert_eq!(selected, SavedFiles::default());
    }
}
