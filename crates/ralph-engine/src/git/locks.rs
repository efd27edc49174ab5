//! Stale locks of git processes on the host. Only a killed process leaves them behind, for example
//! in a power cut; a git process whose runner died finishes and removes its locks.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use crate::durable::StoreError;

/// How often, and how many times, the locks are checked for the end of a running git.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLLS: usize = 40;

/// Waits for the locks of a bare repository that no other process uses, and removes those that
/// stay.
pub(crate) async fn remove_stale_locks(repo: &Path) -> Result<(), StoreError> {
    for _ in 0..MAX_POLLS {
        if find_locks(repo).is_empty() {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    for lock in find_locks(repo) {
        fs::remove_file(&lock).map_err(StoreError::when("remove", &lock))?;
    }
    Ok(())
}

fn find_locks(repo: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![repo.to_owned()];
    while let Some(dir) = directories.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("cannot search `{}` for locks: {error}", dir.display());
                }
                continue;
            }
        };
        let entries = entries.flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|name| name == "lock") {
                found.push(path);
            } else if path.is_dir() && !path.ends_with("objects") {
                directories.push(path);
            }
        }
    }
    found
}
