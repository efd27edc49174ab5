//! Results of set-up in the state directory.
//!
//! A result serves only sandboxes with exactly the files that it was made from. A result of the base
//! commit, which is the user's own revision, serves every run from that commit; a result of any other
//! commit serves only the clean rooms of the same run.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ralph_core::id::Digest;
use ralph_core::ports::Sandbox;
use rustix::fs::statvfs;
use sha2::{Digest as _, Sha256};

use super::archive::{self, MAX_ARCHIVE_BYTES, Packed};
use super::garbage;
use super::inputs::SetupInputs;
use crate::durable::{self, StoreError};
use crate::error::RunError;
use crate::store::RunDir;

/// How long a result is used. The commit stays the same, the registries do not.
pub(super) const MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// The disk space that stays free.
const RESERVED_BYTES: u64 = 2 << 30;

pub(super) const SUFFIX: &str = ".tar";
pub(super) const TEMPORARY_SUFFIX: &str = ".tmp";
pub(super) const SHARED: &str = "base-";
pub(super) const OWN: &str = "run-";
/// The prefix of an empty file that prevents further attempts to store too large results.
pub(super) const TOO_LARGE: &str = "large-";

/// The stored results of set-up, as one run uses them.
pub(super) struct SetupCache {
    pub(super) directory: PathBuf,
    pub(super) run: String,
    pub(super) repository: String,
}

/// The files of an untouched checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckoutIdentity {
    /// Names the commit, and the files that are taken from another one.
    pub(crate) tree: String,
    /// Whether it is the user's own revision, at which the run started.
    pub(crate) is_base: bool,
}

/// Whether a result was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreOutcome {
    Stored,
    /// The result is larger than the limit, which is remembered.
    TooLarge,
    /// An earlier result was too large, or the disk has no room.
    Skipped,
}

/// A stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetupResult {
    pub(super) created: SystemTime,
    pub(super) used: SystemTime,
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// An incomplete result; its file is removed on drop.
struct TemporaryResult(PathBuf);

impl Drop for TemporaryResult {
    fn drop(&mut self) {
        durable::remove_leftover(&self.0);
    }
}

impl SetupCache {
    /// Returns the cache for a run of a repository.
    pub(super) fn for_run(dir: &RunDir, repository: &str) -> Self {
        let run = dir.root().file_name().unwrap_or_default();
        Self {
            directory: dir.setup_results(),
            run: run.to_string_lossy().into_owned(),
            repository: repository.to_owned(),
        }
    }

    /// Returns a complete and undamaged result of the same checkout and inputs.
    pub(super) fn find(&self, inputs: &Digest, checkout: &CheckoutIdentity) -> Option<PathBuf> {
        let entries = match entries(&self.directory) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!("cannot list `{}`: {error}", self.directory.display());
                return None;
            }
        };
        let prefix = self.prefix(inputs, checkout);
        let found = entries
            .iter()
            .find(|entry| entry.name.starts_with(&prefix) && !is_expired(entry.created))?;
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
        inputs: &SetupInputs,
        checkout: &CheckoutIdentity,
    ) -> Result<StoreOutcome, RunError> {
        durable::create_dir(&self.directory)?;
        let marker = self.too_large_marker(inputs);
        let limit = free_bytes(&self.directory)?.saturating_sub(RESERVED_BYTES);
        let limit = limit.min(MAX_ARCHIVE_BYTES);
        if is_recent(&marker) || limit == 0 {
            return Ok(StoreOutcome::Skipped);
        }
        let name = format!(".{}{TEMPORARY_SUFFIX}", self.run);
        let temporary = TemporaryResult(self.directory.join(name));
        let file = File::create(&temporary.0).map_err(StoreError::when("create", &temporary.0))?;
        let content = match archive::pack(sandbox, file, limit).await? {
            Packed::Complete(content) => content,
            Packed::TooLarge if limit < MAX_ARCHIVE_BYTES => return Ok(StoreOutcome::Skipped),
            Packed::TooLarge => {
                durable::write(&marker, b"")?;
                return Ok(StoreOutcome::TooLarge);
            }
        };
        let prefix = self.prefix(&inputs.digest(), checkout);
        let target = self.directory.join(format!("{prefix}{content}{SUFFIX}"));
        durable::rename(&temporary.0, &target)?;
        let removed = garbage::remove_surplus(&self.directory);
        durable::warn_if_failed("remove old results of set-up", removed);
        Ok(StoreOutcome::Stored)
    }

    /// Returns the beginning of the name of a result.
    pub(super) fn prefix(&self, inputs: &Digest, checkout: &CheckoutIdentity) -> String {
        let key = format!("{}\0{}\0{inputs}", self.repository, checkout.tree);
        let key = Digest::compute(key.as_bytes());
        if checkout.is_base {
            format!("{SHARED}{key}-")
        } else {
            format!("{OWN}{}-{key}-", self.run)
        }
    }

    fn too_large_marker(&self, inputs: &SetupInputs) -> PathBuf {
        let key = format!("{}\0{}", self.repository, inputs.program_digest());
        let key = Digest::compute(key.as_bytes());
        self.directory.join(format!("{TOO_LARGE}{key}"))
    }
}

pub(super) fn entries(directory: &Path) -> io::Result<Vec<SetupResult>> {
    let mut entries = all_files(directory)?;
    entries.retain(|entry| entry.name.strip_suffix(SUFFIX).is_some());
    Ok(entries)
}

/// Returns the results, interrupted copies and markers in a directory.
pub(super) fn all_files(directory: &Path) -> io::Result<Vec<SetupResult>> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Another process removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if metadata.is_file() {
            let created = metadata.modified()?;
            entries.push(SetupResult {
                created,
                used: metadata.accessed()?.max(created),
                path: entry.path(),
                name: entry.file_name().to_string_lossy().into_owned(),
                bytes: metadata.len(),
            });
        }
    }
    Ok(entries)
}

/// Returns whether a result is too old. A time in the future is not, because the clock was set back.
pub(super) fn is_expired(created: SystemTime) -> bool {
    let age = SystemTime::now().duration_since(created);
    age.is_ok_and(|age| age > MAX_AGE)
}

fn is_recent(marker: &Path) -> bool {
    let created = fs::metadata(marker).and_then(|metadata| metadata.modified());
    created.is_ok_and(|created| !is_expired(created))
}

fn free_bytes(directory: &Path) -> Result<u64, StoreError> {
    let stat = statvfs(directory).map_err(io::Error::from);
    let stat = stat.map_err(StoreError::when("inspect", directory))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
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

/// Protects an entry from being the least recently used one. The time of its creation stays.
fn mark_used(path: &Path) {
    let times = FileTimes::new().set_accessed(SystemTime::now());
    let marked = File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_times(times));
    if let Err(error) = marked {
        tracing::debug!("cannot mark `{}` as used: {error}", path.display());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn cache(directory: &Path, run: &str) -> SetupCache {
        SetupCache {
            directory: directory.to_owned(),
            run: run.into(),
            repository: "/r".into(),
        }
    }

    pub(crate) fn put(directory: &Path, prefix: &str, content: &[u8]) -> PathBuf {
        let path = directory.join(format!("{prefix}{}{SUFFIX}", Digest::compute(content)));
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn set_age(path: &Path, age: Duration) {
        let time = SystemTime::now() - age;
        let times = FileTimes::new().set_modified(time).set_accessed(time);
        let file = File::options().append(true).open(path).unwrap();
        file.set_times(times).unwrap();
    }

    fn checkout(tree: &str, is_base: bool) -> CheckoutIdentity {
        let tree = tree.to_owned();
        CheckoutIdentity { tree, is_base }
    }

    #[test]
    fn only_complete_results_of_the_same_commit_and_inputs_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "260301-100000-0001");
        let inputs = Digest::compute(b"inputs");
        for is_base in [false, true] {
            let commit = checkout("a", is_base);
            assert_eq!(cache.find(&inputs, &commit), None);
            let stored = put(directory.path(), &cache.prefix(&inputs, &commit), b"own");
            assert_eq!(cache.find(&inputs, &commit), Some(stored.clone()));
            assert_eq!(cache.find(&inputs, &checkout("b", is_base)), None);
            assert_eq!(cache.find(&Digest::compute(b"other"), &commit), None);
            fs::write(&stored, b"ow").unwrap();
            assert_eq!(cache.find(&inputs, &commit), None);
            assert!(!stored.exists());
        }
    }

    #[test]
    fn another_run_uses_only_results_of_the_same_base_commit() {
        let directory = tempfile::tempdir().unwrap();
        let first = cache(directory.path(), "260301-100000-0001");
        let second = cache(directory.path(), "260301-100000-0002");
        let elsewhere = SetupCache {
            repository: "/other".into(),
            ..cache(directory.path(), "260301-100000-0003")
        };
        let inputs = Digest::compute(b"inputs");
        let (work, base) = (checkout("w", false), checkout("b", true));
        put(directory.path(), &first.prefix(&inputs, &work), b"own");
        assert_eq!(second.find(&inputs, &work), None);
        assert_eq!(second.find(&inputs, &checkout("w", true)), None);
        let shared = put(directory.path(), &first.prefix(&inputs, &base), b"shared");
        assert_eq!(second.find(&inputs, &base), Some(shared));
        assert_eq!(elsewhere.find(&inputs, &base), None);
    }

    #[test]
    fn a_result_expires_even_if_it_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path(), "260301-100000-0001");
        let (inputs, base) = (Digest::compute(b"inputs"), checkout("b", true));
        let stored = put(directory.path(), &cache.prefix(&inputs, &base), b"shared");
        set_age(&stored, MAX_AGE / 2);
        assert_eq!(cache.find(&inputs, &base), Some(stored.clone()));
        let entry = entries(directory.path()).unwrap().remove(0);
        assert!(entry.used > entry.created + Duration::from_hours(24));
        set_age(&stored, MAX_AGE + Duration::from_mins(5));
        assert_eq!(cache.find(&inputs, &base), None);
    }
}
