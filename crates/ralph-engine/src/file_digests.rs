//! Lengths and digests of a run's files, recorded when a process ends its work on the run.
//!
//! `ralph audit` compares them to find files that were changed afterwards. Files with a digest
//! elsewhere are left out: finished iterations have theirs in `iteration_finished`, stored
//! contracts are named after theirs, the journal and the repository have chains of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ralph_core::event::{Event, LogPosition, RunEvent};
use ralph_core::state::RunState;

use crate::durable::{self, StoreError};
use crate::journal::{Journal, JournalError};
use crate::store::{DETACHED_LOG, RunDir};

/// Entries of a run's directory that are not recorded.
const EXCLUDED: [&str; 7] = [
    "journal.jsonl",
    "journal.seal",
    "lock",
    DETACHED_LOG,
    "commands",
    "contracts",
    "repo.git",
];

/// The most files that are synced in parallel.
const MAX_PARALLEL_SYNCS: usize = 16;

/// Returns the record of a run's files; none if they cannot be read, which must not prevent the end
/// of the run.
pub fn files_event(dir: &RunDir, state: &RunState) -> Option<Event> {
    match all_marks(dir, state) {
        Ok(files) => Some(Event::Run(RunEvent::FilesRecorded { files })),
        Err(error) => {
            tracing::warn!("cannot record the files of the run: {error}");
            None
        }
    }
}

fn all_marks(dir: &RunDir, state: &RunState) -> Result<BTreeMap<String, LogPosition>, StoreError> {
    let mut files = file_marks(dir)?;
    if let Some((name, path)) = pull_file(dir, state) {
        files.insert(name, durable::mark(&path)?);
    }
    Ok(files)
}

/// Returns length and digest of each file in the run's directory, by its relative path.
fn file_marks(dir: &RunDir) -> Result<BTreeMap<String, LogPosition>, StoreError> {
    let mut paths = Vec::new();
    collect_files(dir.root(), dir.root(), &mut paths)?;
    let directories: BTreeSet<PathBuf> = paths
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|directory| directory.starts_with(dir.root()))
        .map(Path::to_owned)
        .collect();
    // A recorded file must not be shorter, or missing, after a crash of the machine.
    let all: Vec<PathBuf> = paths.iter().cloned().chain(directories).collect();
    for chunk in all.chunks(MAX_PARALLEL_SYNCS) {
        durable::sync_paths(chunk)?;
    }
    let marks = paths
        .iter()
        .map(|path| Ok((relative_path(dir.root(), path), durable::mark(path)?)));
    marks.collect()
}

/// Returns the relative and the full path of a pull request that is stored in the state directory.
fn pull_file(dir: &RunDir, state: &RunState) -> Option<(String, PathBuf)> {
    let url = state.pull.as_ref()?.url.strip_prefix("file://")?;
    let at = url.rfind("/pulls/")?;
    let name = url.get(at + 1..)?;
    let path = dir.root().ancestors().nth(2)?.join(name);
    path.is_file().then(|| (name.to_owned(), path))
}

/// Appends the record of a run's files, for a command that changed a run that no process works on.
pub(crate) fn append_files_event(dir: &RunDir, journal: &mut Journal) -> Result<(), JournalError> {
    if let Some(recorded) = files_event(dir, journal.state()) {
        journal.append(recorded)?;
    }
    Ok(())
}

fn relative_path(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// Collects the files below a directory, without links and temporary files.
fn collect_files(
    root: &Path,
    directory: &Path,
    paths: &mut Vec<PathBuf>,
) -> Result<(), StoreError> {
    let failed = |source| StoreError {
        doing: "list",
        path: directory.to_owned(),
        source,
    };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_left_out =
            directory == root && EXCLUDED.contains(&name.as_str()) || is_live_output(root, &path);
        // The objects of a damaged repository that was moved aside are named by their ids.
        let is_left_out =
            is_left_out || (kind.is_dir() && path.extension().is_some_and(|end| end == "git"));
        if is_left_out || is_temporary(&name) {
            continue;
        }
        if kind.is_dir() {
            collect_files(root, &path, paths)?;
        } else if kind.is_file() && !is_artifact(root, &path) {
            paths.push(path);
        }
    }
    Ok(())
}

/// Returns whether a name is that of a temporary file of `durable::write`.
fn is_temporary(name: &str) -> bool {
    let hidden = name.strip_prefix('.');
    hidden.is_some_and(|name| name.strip_suffix(".tmp").is_some())
}

/// Returns whether a file is the live output of an iteration, which is not evidence.
fn is_live_output(root: &Path, path: &Path) -> bool {
    let below = relative_path(root, path);
    below.starts_with("iterations/") && below.ends_with(".open/output.log")
}

/// Returns whether a file is one of the seven of a finished iteration.
fn is_artifact(root: &Path, path: &Path) -> bool {
    let below = relative_path(root, path);
    let mut parts = below.split('/');
    let is_finished = parts.next() == Some("iterations")
        && parts
            .next()
            .is_some_and(|number| number.strip_suffix(".open").is_none());
    is_finished
        && parts
            .next()
            .is_some_and(|name| RunDir::ARTIFACTS.contains(&name))
}

#[cfg(test)]
mod tests {
    use ralph_core::id::{Digest, RunId};

    use super::*;
    use crate::store::StateDir;

    #[test]
    fn every_file_without_another_digest_is_recorded() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::open(home.path().join("state")).unwrap();
        let dir = state.run(&RunId::parse("260301-100000-0001").unwrap());
        let recorded = [
            "doctor/1/prompt.md",
            "files/activity.log",
            "iterations/1/response.partial",
            "iterations/1/transcript.jsonl",
            "iterations/2.open/prompt.md",
            "ralph_task.md",
        ];
        let left_out = [
            "journal.jsonl",
            "journal.seal",
            "lock",
            "commands/1.json",
            "contracts/abc.md",
            "files/.progress.md.tmp",
            "iterations/1/prompt.md",
            "repo.git/HEAD",
        ];
        for name in recorded.iter().chain(&left_out) {
            let path = dir.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        std::os::unix::fs::symlink("ralph_task.md", dir.root().join("link")).unwrap();
        let files = file_marks(&dir).unwrap();
        let names: Vec<&String> = files.keys().collect();
        assert_eq!(names, recorded);
        for (name, mark) in &files {
            assert_eq!(mark.bytes, name.len() as u64, "{name}");
            assert_eq!(mark.sha256, Digest::compute(name.as_bytes()), "{name}");
        }
    }
}
