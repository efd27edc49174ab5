//! A source host backed by a repository on this machine.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use ralph_core::id::Digest;
use ralph_core::ports::{Clock, PullDraft, PullRequest, PullState, Scm, ScmError};
use ralph_guest::files::sync_filesystem;

use super::pull_store::{LockedPullStore, PullStore};
use super::record::PullRecord;
use super::url;
use super::worktree::GitProgram;

/// Number of hex digits of the path digest in a repository's directory name.
const DIRECTORY_DIGITS: usize = 16;

/// A source host for any local repository; its pull requests are records in the state directory.
///
/// Several processes may use the same records concurrently.
pub struct LocalScm {
    store: PullStore,
    git: GitProgram,
    clock: Arc<dyn Clock>,
}

impl LocalScm {
    /// Opens an existing repository; `records` contains the records of all repositories.
    pub fn new(
        records: &Path,
        repo: &Path,
        git: GitProgram,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ScmError> {
        let failed = |source| ScmError::Io {
            doing: format!("use repository `{}`", repo.display()),
            source,
        };
        let canonical = repo.canonicalize().map_err(failed)?;
        let repo = canonical.into_os_string().into_string().map_err(|_| {
            let message = "its path is not valid UTF-8, which git URLs require";
            failed(io::Error::new(io::ErrorKind::InvalidInput, message))
        })?;
        let digest = Digest::compute(repo.as_bytes());
        let records = std::path::absolute(records).map_err(|source| ScmError::Io {
            doing: format!("use pull request records `{}`", records.display()),
            source,
        })?;
        let directory = records.join(&digest.as_str()[..DIRECTORY_DIGITS]);
        Ok(Self {
            store: PullStore { directory, repo },
            git,
            clock,
        })
    }

    /// Reads the record of a pull request.
    pub fn read_record(path: &Path) -> Result<PullRecord, ScmError> {
        PullRecord::read(path)
    }

    /// Returns the record path for a pull request's URL.
    pub fn record_path(url: &str) -> Option<PathBuf> {
        url::to_path(url)
    }

    /// Sets the state of a pull request that the user merged or discarded.
    pub async fn set_state(&self, number: u64, state: PullState) -> Result<PullRequest, ScmError> {
        let now = self.clock.now();
        self.with_store(move |store| {
            let locked = store.lock()?;
            let mut record = locked.read(number)?;
            if record.state != state {
                record.state = state;
                record.updated_at = now;
                locked.write(&record)?;
            }
            Ok(record.summary(&locked.path(number)))
        })
        .await
    }

    /// Accesses the records in a blocking thread, which may wait for the disk and the lock.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&PullStore) -> Result<T, ScmError> + Send + 'static,
    ) -> Result<T, ScmError> {
        let store = self.store.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(result) => result,
            Err(stopped) => Err(ScmError::Io {
                doing: "work on the pull request records".into(),
                source: io::Error::other(stopped),
            }),
        }
    }
}

/// Updates a record, writing it only if it changed.
fn refresh_record(
    store: &LockedPullStore<'_>,
    record: PullRecord,
    draft: &PullDraft,
    now: jiff::Timestamp,
) -> Result<PullRequest, ScmError> {
    let path = store.path(record.number);
    let record = match record.updated(draft, now) {
        Some(changed) => {
            store.write(&changed)?;
            changed
        }
        None => record,
    };
    Ok(record.summary(&path))
}

fn open_pull(
    store: &PullStore,
    draft: &PullDraft,
    now: jiff::Timestamp,
) -> Result<PullRequest, ScmError> {
    let locked = store.lock()?;
    let records = locked.records()?;
    let highest = records.last().map_or(0, |record| record.number);
    if let Some(record) = records.into_iter().find(|record| record.matches(draft)) {
        return refresh_record(&locked, record, draft, now);
    }
    let number = highest.checked_add(1).ok_or_else(|| ScmError::Io {
        doing: "number a pull request".into(),
        source: io::Error::other(format!("`{highest}` is the highest possible number")),
    })?;
    let record = PullRecord::new(number, &store.repo, draft, now);
    locked.write(&record)?;
    Ok(record.summary(&locked.path(number)))
}

fn update_pull(
    store: &PullStore,
    number: u64,
    draft: &PullDraft,
    now: jiff::Timestamp,
) -> Result<PullRequest, ScmError> {
    let locked = store.lock()?;
    let record = locked.read(number)?;
    if !record.matches(draft) {
        let message = format!(
            "it belongs to run `{}` and branch `{}`",
            record.run, record.head
        );
        return Err(ScmError::Io {
            doing: format!(
                "update pull request {number} for run `{}` and branch `{}`",
                draft.run, draft.head
            ),
            source: io::Error::new(io::ErrorKind::InvalidInput, message),
        });
    }
    refresh_record(&locked, record, draft, now)
}

/// Syncs the filesystem of a repository: git syncs files, but neither directories nor objects that the user's
/// own commands have just written.
fn sync_repository(path: &Path) -> io::Result<()> {
    sync_filesystem(File::open(path)?)
}

#[async_trait]
impl Scm for LocalScm {
    fn name(&self) -> &'static str {
        "local"
    }

    fn remote(&self) -> &str {
        &self.store.repo
    }

    async fn sync(&self) -> Result<(), ScmError> {
        self.with_store(|store| {
            sync_repository(Path::new(&store.repo)).map_err(|source| ScmError::Io {
                doing: format!("sync repository `{}`", store.repo),
                source,
            })
        })
        .await
    }

    async fn check_push(&self, branch: &str) -> Result<(), ScmError> {
        let repo = Path::new(&self.store.repo);
        match self.git.worktree_with_branch(repo, branch).await? {
            Some(worktree) => Err(ScmError::CheckedOut {
                branch: branch.to_owned(),
                repo: worktree,
            }),
            None => Ok(()),
        }
    }

    async fn find(&self, head: &str) -> Result<Option<PullRequest>, ScmError> {
        let head = head.to_owned();
        self.with_store(move |store| {
            let Some(locked) = store.lock_if_exists()? else {
                return Ok(None);
            };
            // The newest, if several runs have used the same branch.
            let found = locked
                .records()?
                .into_iter()
                .rfind(|record| record.head == head);
            Ok(found.map(|record| record.summary(&locked.path(record.number))))
        })
        .await
    }

    async fn open(&self, draft: &PullDraft) -> Result<PullRequest, ScmError> {
        let (draft, now) = (draft.clone(), self.clock.now());
        self.with_store(move |store| open_pull(store, &draft, now))
            .await
    }

    async fn update(&self, number: u64, draft: &PullDraft) -> Result<PullRequest, ScmError> {
        let (draft, now) = (draft.clone(), self.clock.now());
        self.with_store(move |store| update_pull(store, number, &draft, now))
            .await
    }
}

#[cfg(test)]
mod tests;
