//! Results of set-up in the state directory.
//!
//! A result of the base commit, which is the user's own revision, serves every run of the
//! repository. A result of any other commit serves only the clean rooms of that commit in the same
//! run, because the agent can change manifests and install scripts.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ralph_core::id::{Digest, RunId};
use ralph_core::ports::Sandbox;
use sha2::{Digest as _, Sha256};

use super::archive;
use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::store::{RunDir, StateDir};

/// The most disk space of all stored results, in bytes.
pub const MAX_SETUP_CACHE_BYTES: u64 = 20 << 30;
/// The most stored results.
const MAX_RESULTS: usize = 50;

const SUFFIX: &str = ".tar";
const SHARED: &str = "base-";
const OWN: &str = "run-";

/// The stored results of set-up, as one run uses them.
pub struct SetupCache {
    directory: PathBuf,
    run: String,
    repository: String,
}

impl SetupCache {
    /// Returns the cache for a run of a repository.
    pub(crate) fn for_run(dir: &RunDir, repository: &str) -> Self {
        let run = dir.root().file_name().unwrap_or_default();
        Self {
            directory: dir.setup_results(),
            run: run.to_string_lossy().into_owned(),
            repository: repository.to_owned(),
        }
    }

    /// Returns a complete and undamaged result for these inputs: of the base commit, or else of these
    /// files.
    pub(super) fn find(&self, inputs: &Digest, tree: &str) -> Option<PathBuf> {
        let entries = match entries(&self.directory) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!("cannot list `{}`: {error}", self.directory.display());
                return None;
            }
        };
        let prefixes = [self.shared_prefix(inputs), self.own_prefix(inputs, tree)];
        let found = prefixes.iter().find_map(|prefix| {
            let mut entries = entries.iter();
            entries.find(|entry| entry.name.starts_with(prefix.as_str()))
        })?;
        if is_intact(found) {
            mark_used(&found.path);
            return Some(found.path.clone());
        }
        tracing::warn!("`{}` is damaged and is removed", found.path.display());
        durable::remove_leftover(&found.path);
        None
    }

    /// Stores the result of set-up in a sandbox. The entry appears only when it is complete.
    pub(super) async fn store(
        &self,
        sandbox: &dyn Sandbox,
        inputs: &Digest,
        (tree, is_base): (&str, bool),
    ) -> Result<(), RunError> {
        durable::create_dir(&self.directory)?;
        let temporary = self.directory.join(format!(".{}.tmp", self.run));
        let file = File::create(&temporary).map_err(StoreError::when("create", &temporary))?;
        let packed = archive::pack(sandbox, file).await;
        let content = match packed {
            Ok(content) => content,
            Err(error) => {
                durable::remove_leftover(&temporary);
                return Err(error);
            }
        };
        let prefix = if is_base {
            self.shared_prefix(inputs)
        } else {
            self.own_prefix(inputs, tree)
        };
        let target = self.directory.join(format!("{prefix}{content}{SUFFIX}"));
        durable::rename(&temporary, &target)?;
        let removed = remove_surplus(&self.directory, MAX_RESULTS, MAX_SETUP_CACHE_BYTES);
        durable::warn_if_failed("remove old results of set-up", removed.map(drop));
        Ok(())
    }

    fn shared_prefix(&self, inputs: &Digest) -> String {
        let key = Digest::compute(format!("{}\0{inputs}", self.repository).as_bytes());
        format!("{SHARED}{key}-")
    }

    fn own_prefix(&self, inputs: &Digest, tree: &str) -> String {
        let key = Digest::compute(format!("{inputs}\0{tree}").as_bytes());
        format!("{OWN}{}-{key}-", self.run)
    }

    /// Returns the disk space of all results, in bytes.
    pub fn disk_use(state: &StateDir) -> io::Result<u64> {
        let entries = entries(&state.setup_results())?;
        Ok(entries.iter().map(|entry| entry.bytes).sum())
    }

    /// Removes interrupted copies, the results of runs that `is_open` rejects, and the least recently
    /// used ones above the limits. Returns the freed bytes.
    pub fn collect_garbage(state: &StateDir, is_open: impl Fn(&RunId) -> bool) -> io::Result<u64> {
        let directory = state.setup_results();
        let mut freed = 0;
        for entry in entries(&directory)? {
            let own = entry.name.strip_prefix(OWN);
            let run = own.and_then(|rest| rest.rsplitn(3, '-').nth(2));
            let is_stale = run.is_some_and(|run| !RunId::parse(run).is_some_and(|id| is_open(&id)));
            if is_stale {
                fs::remove_file(&entry.path)?;
                freed += entry.bytes;
            }
        }
        freed += remove_surplus(&directory, MAX_RESULTS, MAX_SETUP_CACHE_BYTES)?;
        Ok(freed)
    }
}

/// A stored result.
struct SetupResult {
    used: SystemTime,
    path: PathBuf,
    name: String,
    bytes: u64,
}

fn entries(directory: &Path) -> io::Result<Vec<SetupResult>> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let metadata = entry.metadata()?;
        if name.strip_suffix(SUFFIX).is_some() && metadata.is_file() {
            entries.push(SetupResult {
                used: metadata.modified()?,
                path: entry.path(),
                name,
                bytes: metadata.len(),
            });
        }
    }
    Ok(entries)
}

/// Returns whether the content of an entry has the digest in its name.
fn is_intact(entry: &SetupResult) -> bool {
    let stem = entry.name.strip_suffix(SUFFIX).unwrap_or_default();
    let expected = stem.rsplit('-').next().unwrap_or_default();
    let computed = File::open(&entry.path).and_then(|mut file| {
        let mut hash = Sha256::new();
        io::copy(&mut file, &mut HashWriter(&mut hash))?;
        Ok(Digest::from_sha256(&hash.finalize()))
    });
    computed.is_ok_and(|computed| computed.as_str() == expected)
}

/// Computes the digest of everything that is written.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Protects an entry from being the least recently used one.
fn mark_used(path: &Path) {
    let marked = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()));
    if let Err(error) = marked {
        tracing::debug!("cannot mark `{}` as used: {error}", path.display());
    }
}

/// Removes the least recently used entries above the limits, and interrupted copies of other runs.
fn remove_surplus(directory: &Path, most: usize, most_bytes: u64) -> io::Result<u64> {
    let mut entries = entries(directory)?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
    let (mut kept_bytes, mut freed) = (0_u64, 0);
    for (index, entry) in entries.iter().enumerate() {
        kept_bytes = kept_bytes.saturating_add(entry.bytes);
        // The newest one stays, whatever its size.
        if index >= most || (index > 0 && kept_bytes > most_bytes) {
            fs::remove_file(&entry.path)?;
            freed += entry.bytes;
        }
    }
    Ok(freed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cache(directory: &Path) -> SetupCache {
        SetupCache {
            directory: directory.to_owned(),
            run: "260301-100000-0001".into(),
            repository: "/r".into(),
        }
    }

    fn put(directory: &Path, prefix: &str, content: &[u8]) -> PathBuf {
        let path = directory.join(format!("{prefix}{}{SUFFIX}", Digest::compute(content)));
        fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn only_complete_results_of_the_same_files_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let inputs = Digest::compute(b"inputs");
        assert_eq!(cache.find(&inputs, "a"), None);
        let own = put(directory.path(), &cache.own_prefix(&inputs, "a"), b"own");
        assert_eq!(cache.find(&inputs, "a"), Some(own));
        assert_eq!(cache.find(&inputs, "b"), None);
        let shared = put(directory.path(), &cache.shared_prefix(&inputs), b"shared");
        assert_eq!(cache.find(&inputs, "b"), Some(shared.clone()));
        assert_eq!(cache.find(&Digest::compute(b"other"), "b"), None);
        fs::write(&shared, b"share").unwrap();
        assert_eq!(cache.find(&inputs, "b"), None);
        assert!(!shared.exists());
    }

    #[test]
    fn another_run_of_the_repository_uses_only_the_shared_result() {
        let directory = tempfile::tempdir().unwrap();
        let first = cache(directory.path());
        let second = SetupCache {
            run: "260301-100000-0002".into(),
            ..cache(directory.path())
        };
        let elsewhere = SetupCache {
            repository: "/other".into(),
            ..cache(directory.path())
        };
        let inputs = Digest::compute(b"inputs");
        put(directory.path(), &first.own_prefix(&inputs, "a"), b"own");
        assert_eq!(second.find(&inputs, "a"), None);
        let shared = put(directory.path(), &first.shared_prefix(&inputs), b"shared");
        assert_eq!(second.find(&inputs, "a"), Some(shared));
        assert_eq!(elsewhere.find(&inputs, "c"), None);
    }

    #[test]
    fn least_recently_used_results_and_those_of_ended_runs_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::open(home.path().join("state")).unwrap();
        let directory = state.setup_results();
        fs::create_dir_all(&directory).unwrap();
        let own = put(&directory, "run-260301-100000-0001-abc-", b"own");
        let shared = put(&directory, "base-abc-", b"shared");
        let older = put(&directory, "base-def-", b"older");
        let past = SystemTime::now() - Duration::from_hours(1);
        File::options()
            .append(true)
            .open(&older)
            .unwrap()
            .set_modified(past)
            .unwrap();
        assert_eq!(SetupCache::disk_use(&state).unwrap(), 14);
        assert_eq!(SetupCache::collect_garbage(&state, |_| true).unwrap(), 0);
        assert_eq!(SetupCache::collect_garbage(&state, |_| false).unwrap(), 3);
        assert!(!own.exists());
        assert_eq!(remove_surplus(&directory, 1, 100).unwrap(), 5);
        assert!(shared.exists() && !older.exists());
    }
}
