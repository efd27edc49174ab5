//! Records which request created which run, so that a repeated request returns the same run.
//!
//! A record is written before the journal of its run. It counts only if the journal exists, so a crash
//! between the two leaves a record that the repeated request replaces.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ralph_core::id::{Digest, RunId};
use ralph_engine::durable::{self, StoreError};
use serde::{Deserialize, Serialize};

/// The directory of the records in the state directory.
const DIRECTORY: &str = "server-requests";
/// The most records.
const MAX_RECORDS: usize = 1_000;
/// The longest time that a record counts.
const MAX_AGE: Duration = Duration::from_hours(24 * 7);
/// The most characters of a key.
const MAX_KEY_CHARS: usize = 255;

/// A key of a client that marks repetitions of the same request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey {
    key: Digest,
    /// The digest of the request's body.
    body: Digest,
}

/// The records of requests; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    directory: PathBuf,
    /// The keys of the requests in progress.
    active: Arc<Mutex<BTreeSet<String>>>,
}

/// What is known about a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestRecord {
    /// It created this run.
    Created(RunId),
    /// Another body was sent with the key.
    OtherBody,
    /// It is in progress.
    Active,
}

/// A request in progress; it ends when this value is dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest {
    requests: Requests,
    key: IdempotencyKey,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    body: Digest,
    run: RunId,
}

impl IdempotencyKey {
    /// Creates the key of a request; none if it is empty, too long or not printable ASCII.
    pub(crate) fn new(key: &str, body: &[u8]) -> Option<Self> {
        let is_valid = !key.is_empty()
            && key.len() <= MAX_KEY_CHARS
            && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_valid.then(|| Self {
            key: Digest::compute(key.as_bytes()),
            body: Digest::compute(body),
        })
    }
}

impl Requests {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            directory: root.join(DIRECTORY),
            active: Arc::default(),
        }
    }

    /// Begins a request, unless an earlier one with the same key is known. `exists` returns whether a
    /// run was created.
    pub(super) fn begin(
        &self,
        key: IdempotencyKey,
        exists: impl Fn(&RunId) -> bool,
    ) -> Result<Result<ActiveRequest, RequestRecord>, StoreError> {
        if !self.lock().insert(key.key.to_string()) {
            return Ok(Err(RequestRecord::Active));
        }
        let active = ActiveRequest {
            requests: self.clone(),
            key,
        };
        let earlier = active.read()?.filter(|stored| exists(&stored.run));
        Ok(match earlier {
            Some(stored) if stored.body == active.key.body => {
                Err(RequestRecord::Created(stored.run))
            }
            Some(_) => Err(RequestRecord::OtherBody),
            None => Ok(active),
        })
    }

    /// Removes old records, and the oldest ones above the limit.
    fn prune(&self) -> std::io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
        files.sort();
        let excess = files.len().saturating_sub(MAX_RECORDS);
        for (index, (modified, path)) in files.iter().enumerate() {
            let is_old = modified.elapsed().is_ok_and(|age| age > MAX_AGE);
            if index < excess || is_old {
                durable::remove_leftover(path);
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveRequest {
    /// Records the run that the request is about to create.
    pub(super) fn record(&self, run: &RunId) -> Result<(), StoreError> {
        let path = self.path();
        durable::create_dir(&self.requests.directory)?;
        let stored = StoredRequest {
            body: self.key.body.clone(),
            run: run.clone(),
        };
        let text = serde_json::to_vec(&stored)
            .map_err(std::io::Error::from)
            .map_err(StoreError::when("write", &path))?;
        durable::write(&path, &text)?;
        if let Err(error) = self.requests.prune() {
            tracing::warn!(%error, "cannot remove old records of requests");
        }
        Ok(())
    }

    fn read(&self) -> Result<Option<StoredRequest>, StoreError> {
        let path = self.path();
        let Some(bytes) = durable::read_if_present(&path)? else {
            return Ok(None);
        };
        match serde_json::from_slice(&bytes) {
            Ok(stored) => Ok(Some(stored)),
            Err(error) => {
                tracing::warn!(%error, "`{}` is damaged and does not count", path.display());
                Ok(None)
            }
        }
    }

    fn path(&self) -> PathBuf {
        let name = format!("{}.json", self.key.key);
        self.requests.directory.join(name)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.requests.lock().remove(self.key.key.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::parse("260301-100000-0001").unwrap()
    }

    fn key(key: &str, body: &str) -> IdempotencyKey {
        IdempotencyKey::new(key, body.as_bytes()).unwrap()
    }

    #[test]
    fn a_key_names_one_request_also_after_a_restart() {
        let root = tempfile::tempdir().unwrap();
        let begin = |requests: &Requests, key: IdempotencyKey, exists: bool| {
            requests.begin(key, |_| exists).unwrap()
        };
        let requests = Requests::new(root.path());
        let first = begin(&requests, key("k", "body"), true).unwrap();
        let active = begin(&requests, key("k", "body"), true).unwrap_err();
        assert_eq!(active, RequestRecord::Active);
        first.record(&run()).unwrap();
        drop(first);

        let restarted = Requests::new(root.path());
        let created = begin(&restarted, key("k", "body"), true).unwrap_err();
        assert_eq!(created, RequestRecord::Created(run()));
        let other = begin(&restarted, key("k", "other"), true).unwrap_err();
        assert_eq!(other, RequestRecord::OtherBody);
        begin(&restarted, key("another", "body"), true).unwrap();
        // The server crashed before it created the run.
        begin(&restarted, key("k", "other"), false).unwrap();
    }

    #[test]
    fn keys_and_the_number_of_records_are_bounded() {
        for invalid in ["", "a\nb", "é", &"x".repeat(MAX_KEY_CHARS + 1)] {
            assert_eq!(IdempotencyKey::new(invalid, b""), None, "{invalid}");
        }
        let root = tempfile::tempdir().unwrap();
        let requests = Requests::new(root.path());
        fs::create_dir(&requests.directory).unwrap();
        for number in 0..MAX_RECORDS + 5 {
            fs::write(requests.directory.join(format!("{number}.json")), "{}").unwrap();
        }
        let request = requests.begin(key("k", ""), |_| true).unwrap().unwrap();
        request.record(&run()).unwrap();
        let count = fs::read_dir(&requests.directory).unwrap().count();
        assert_eq!(count, MAX_RECORDS);
        assert!(request.read().unwrap().is_some());
    }
}
