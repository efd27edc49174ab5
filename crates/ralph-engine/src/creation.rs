//! Creates runs: under unique ids, one at a time, and in a recorded order, because the clock behind
//! the ids can be set back.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph_core::id::RunId;
use rustix::fs::FlockOperation;

use crate::durable::{self, StoreError};
use crate::store::{RunDir, StateDir};

/// The number of attempts to acquire the lock: half a minute in total.
const LOCK_ATTEMPTS: usize = 3_000;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);

/// The start of a sort key that comes after the number of every line.
const LAST_KEY: &str = "~";

/// Prevents other processes from creating runs until it is dropped.
#[derive(Debug)]
pub struct CreationLock {
    _file: File,
}

impl StateDir {
    /// Waits until no other process creates a run, and locks the creation.
    pub fn lock_creation(&self) -> Result<CreationLock, StoreError> {
        let path = self.root().join("runs.lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))?;
        for _ in 0..LOCK_ATTEMPTS {
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(CreationLock { _file: file });
            }
            std::thread::sleep(LOCK_RETRY_DELAY);
        }
        Err(StoreError {
            doing: "lock",
            path,
            source: io::Error::new(
                io::ErrorKind::TimedOut,
                "another process has been creating a run for half a minute",
            ),
        })
    }

    /// Returns each id with a text that sorts the runs by their creation, and that later runs do not
    /// change. Runs of versions that did not record the order are sorted by their ids, which start with a
    /// date.
    pub(crate) fn creation_keys(&self, ids: Vec<RunId>) -> Vec<(String, RunId)> {
        let text = read_order(&order_file(self.root()));
        let lines: HashMap<&str, usize> = text.lines().zip(0..).collect();
        let line = |id: &RunId| lines.get(id.as_str()).copied();
        let mut recorded: Vec<(usize, &RunId)> =
            ids.iter().filter_map(|id| Some((line(id)?, id))).collect();
        recorded.sort();
        let key = |id: &RunId| {
            if let Some(line) = line(id) {
                return format!("{line:010}-1-{id}");
            }
            match recorded.iter().find(|(_, later)| *later > id) {
                Some((line, _)) => format!("{line:010}-0-{id}"),
                None => format!("{LAST_KEY}-0-{id}"),
            }
        };
        let keys: Vec<String> = ids.iter().map(key).collect();
        keys.into_iter().zip(ids).collect()
    }
}

/// Reads the order of creation. Without it, runs are sorted by their ids.
fn read_order(file: &Path) -> String {
    match durable::read_if_present(file) {
        Ok(text) => String::from_utf8_lossy(&text.unwrap_or_default()).into_owned(),
        Err(error) => {
            tracing::warn!("{error}");
            String::new()
        }
    }
}

impl RunDir {
    /// Creates the directory for this process alone; false if another run has the id.
    pub fn reserve(&self) -> Result<bool, StoreError> {
        if let Some(parent) = self.root().parent() {
            durable::create_dir(parent)?;
        }
        match DirBuilder::new().mode(0o700).create(self.root()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(StoreError {
                doing: "create",
                path: self.root().to_owned(),
                source,
            }),
        }
    }

    /// Removes a reserved directory in which nothing was created.
    pub fn release(&self) {
        durable::warn_if_failed(
            "remove an unused run directory",
            fs::remove_dir(self.root()),
        );
    }

    /// Records that the run comes after all existing runs.
    pub(crate) fn record_creation(&self) -> Result<(), StoreError> {
        let (Some(state), Some(name)) = (self.root().ancestors().nth(2), self.root().file_name())
        else {
            return Ok(());
        };
        let path = order_file(state);
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::when("open", &path))?;
        // The line also starts with a line break, so that a partial line from a crash does not
        // corrupt it.
        let line = format!("\n{}\n", name.to_string_lossy());
        file.write_all(line.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(StoreError::when("append to", &path))?;
        durable::sync_dir(state)
    }
}

fn order_file(state: &Path) -> PathBuf {
    state.join("runs.order")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<RunId> {
        names
            .iter()
            .map(|name| RunId::parse(name).unwrap())
            .collect()
    }

    #[test]
    fn the_order_of_creation_counts_and_older_runs_keep_the_order_of_their_ids() {
        let temporary = tempfile::tempdir().unwrap();
        let state = StateDir::open(temporary.path().to_owned()).unwrap();
        let create = |name: &str| {
            let dir = state.run(&RunId::parse(name).unwrap());
            assert!(dir.reserve().unwrap());
            assert!(!dir.reserve().unwrap(), "{name} is reserved once");
            dir.record_creation().unwrap();
        };
        // The clock was nine months ahead, and was then set back.
        create("261201-100000-0001");
        create("260301-100000-0002");
        // A crash in the middle of a line.
        let order = temporary.path().join("runs.order");
        let mut file = OpenOptions::new().append(true).open(&order).unwrap();
        file.write_all(b"\n2603").unwrap();
        create("260301-100100-0003");
        let known = ids(&[
            "260301-100000-0002",
            "260301-100100-0003",
            "261201-100000-0001",
            // These two were created by a version that did not record the order.
            "250101-100000-0004",
            "270101-100000-0005",
        ]);
        let sorted = ids(&[
            "250101-100000-0004",
            "261201-100000-0001",
            "260301-100000-0002",
            "260301-100100-0003",
            "270101-100000-0005",
        ]);
        let sort = |ids: Vec<RunId>| -> Vec<RunId> {
            let mut keyed = state.creation_keys(ids);
            keyed.sort();
            keyed.into_iter().map(|(_, id)| id).collect()
        };
        assert_eq!(sort(known), sorted);
        fs::remove_file(order).unwrap();
        let by_id = sort(sorted.clone());
        assert!(by_id.is_sorted(), "{by_id:?}");
    }

    #[test]
    fn an_empty_directory_is_released_and_a_used_one_is_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let state = StateDir::open(temporary.path().to_owned()).unwrap();
        let dir = state.run(&RunId::parse("260301-100000-0001").unwrap());
        assert!(dir.reserve().unwrap());
        dir.release();
        assert!(!dir.root().exists());
        assert!(dir.reserve().unwrap());
        fs::write(dir.journal(), "x").unwrap();
        dir.release();
        assert!(dir.journal().exists());
    }
}
