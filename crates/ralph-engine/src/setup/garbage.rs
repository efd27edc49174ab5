//! Removes results of set-up that no run needs.

use std::fs;
use std::io;
use std::path::Path;

use ralph_core::id::RunId;

use super::cache::{
    OWN, SUFFIX, SetupResult, TEMPORARY_SUFFIX, TOO_LARGE, all_files, entries, is_expired,
};
use crate::store::StateDir;

/// The most disk space of all stored results, in bytes.
pub const MAX_SETUP_CACHE_BYTES: u64 = 20 << 30;
/// The most stored results.
const MAX_RESULTS: usize = 50;
/// The most stored results that belong to one run.
const MAX_OWN_RESULTS: usize = 4;

/// The state of a run that stored results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupRunState {
    /// A process works on it.
    Working,
    /// It can be continued.
    Open,
    /// It has ended, or does not exist.
    Ended,
}

/// The results that are garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupGarbageScope {
    /// Those that no run will use.
    Unused,
    /// All results.
    All,
}

/// Stored results that can be removed.
#[derive(Debug, Default)]
pub struct SetupGarbage {
    files: Vec<SetupResult>,
}

impl SetupGarbage {
    /// Finds interrupted copies, the results of ended runs, expired ones, and the least recently used
    /// ones above the limits; or else all results.
    pub fn find(
        state: &StateDir,
        scope: SetupGarbageScope,
        run_state: impl Fn(&RunId) -> SetupRunState,
    ) -> io::Result<Self> {
        let directory = state.setup_results();
        let mut results = Vec::new();
        let mut files = Vec::new();
        for file in all_files(&directory)? {
            let run = owner(&file.name)
                .map(|run| RunId::parse(run).map_or(SetupRunState::Ended, |run| run_state(&run)));
            let is_temporary = file.name.strip_suffix(TEMPORARY_SUFFIX).is_some();
            let is_garbage = if is_temporary {
                run != Some(SetupRunState::Working)
            } else {
                scope == SetupGarbageScope::All
                    || run == Some(SetupRunState::Ended)
                    || is_expired(file.created)
            };
            if is_garbage {
                files.push(file);
            } else if file.name.strip_suffix(SUFFIX).is_some() {
                results.push(file);
            }
        }
        files.extend(surplus(results, MAX_RESULTS, MAX_SETUP_CACHE_BYTES));
        Ok(Self { files })
    }

    /// Returns the disk space, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Removes the files.
    pub fn remove(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|file| remove(&file.path))
    }
}

/// Returns the disk space of all results, in bytes.
pub fn setup_disk_use(state: &StateDir) -> io::Result<u64> {
    let files = all_files(&state.setup_results())?;
    Ok(files.iter().map(|file| file.bytes).sum())
}

/// Removes the results that are too many, too large or too old.
pub(super) fn remove_surplus(directory: &Path) -> io::Result<()> {
    let surplus = surplus(entries(directory)?, MAX_RESULTS, MAX_SETUP_CACHE_BYTES);
    surplus.iter().try_for_each(|entry| remove(&entry.path))
}

/// Returns the run that a file belongs to; none for shared results.
fn owner(name: &str) -> Option<&str> {
    if name.starts_with(TOO_LARGE) {
        return None;
    }
    if let Some(name) = name.strip_suffix(TEMPORARY_SUFFIX) {
        return Some(name.trim_start_matches('.'));
    }
    let own = name.strip_prefix(OWN)?;
    own.rsplitn(3, '-').nth(2)
}

/// Returns the least recently used results above the limits, the oldest ones of each run above its
/// limit, and expired ones.
fn surplus(mut results: Vec<SetupResult>, most: usize, most_bytes: u64) -> Vec<SetupResult> {
    results.sort_by_key(|entry| std::cmp::Reverse(entry.used));
    let mut kept: Vec<&SetupResult> = Vec::new();
    let mut kept_bytes = 0_u64;
    let mut surplus = Vec::new();
    for entry in &results {
        let own = owner(&entry.name).map_or(0, |run| {
            let same_run = kept.iter().filter(|other| owner(&other.name) == Some(run));
            same_run.count()
        });
        // The newest one stays, whatever its size.
        let is_too_large = !kept.is_empty() && kept_bytes.saturating_add(entry.bytes) > most_bytes;
        if kept.len() >= most || is_too_large || own >= MAX_OWN_RESULTS || is_expired(entry.created)
        {
            surplus.push(entry.clone());
        } else {
            kept_bytes = kept_bytes.saturating_add(entry.bytes);
            kept.push(entry);
        }
    }
    surplus
}

/// Removes a file that another process may remove at the same time.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::cache::MAX_AGE;
    use super::super::cache::tests::{put, set_age};
    use super::*;

    const RUN: &str = "260301-100000-0001";

    #[test]
    fn results_without_a_use_are_removed_and_counted() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::open(home.path().join("state")).unwrap();
        let directory = state.setup_results();
        fs::create_dir_all(&directory).unwrap();
        let own = put(&directory, &format!("run-{RUN}-abc-"), b"own");
        let shared = put(&directory, "base-abc-", b"shared");
        let copy = directory.join(format!(".{RUN}.tmp"));
        fs::write(&copy, b"interrupted").unwrap();
        let marker = directory.join("large-abc");
        fs::write(&marker, b"").unwrap();
        assert_eq!(setup_disk_use(&state).unwrap(), 20);
        let find = |scope, run| SetupGarbage::find(&state, scope, |_| run).unwrap();
        for (scope, run, bytes) in [
            (SetupGarbageScope::Unused, SetupRunState::Working, 0),
            (SetupGarbageScope::Unused, SetupRunState::Open, 11),
            (SetupGarbageScope::Unused, SetupRunState::Ended, 14),
            (SetupGarbageScope::All, SetupRunState::Working, 9),
            (SetupGarbageScope::All, SetupRunState::Ended, 20),
        ] {
            assert_eq!(find(scope, run).bytes(), bytes, "{scope:?} {run:?}");
        }
        let garbage = find(SetupGarbageScope::Unused, SetupRunState::Ended);
        fs::remove_file(&own).unwrap();
        garbage.remove().unwrap();
        assert!(!copy.exists() && shared.exists() && marker.exists());
        set_age(&shared, MAX_AGE + Duration::from_mins(1));
        assert_eq!(
            find(SetupGarbageScope::Unused, SetupRunState::Open).bytes(),
            6
        );
        find(SetupGarbageScope::All, SetupRunState::Open)
            .remove()
            .unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }

    #[test]
    fn the_least_recently_used_results_are_surplus() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        for number in 1..=6_u32 {
            let prefix = match number {
                1 => "base-abc-".to_owned(),
                _ => format!("run-{RUN}-{number}-"),
            };
            let path = put(directory, &prefix, b"12345");
            set_age(&path, Duration::from_hours(u64::from(number)));
        }
        let names = |most, bytes| {
            let surplus = surplus(entries(directory).unwrap(), most, bytes);
            surplus.iter().map(|entry| entry.bytes).sum::<u64>()
        };
        // A run has at most four of its own.
        assert_eq!(names(50, 100), 5);
        assert_eq!(names(2, 100), 20);
        assert_eq!(names(50, 12), 20);
        assert_eq!(names(50, 1), 25);
    }
}
