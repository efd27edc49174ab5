//! Publishes the server in the state directory while it runs.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use ralph_app::{App, AppError, ServerRecord};
use ralph_core::secret::Secret;

/// The entry of a server in the state directory.
#[derive(Debug)]
pub(crate) struct PublishedServer {
    path: PathBuf,
    url: String,
    started_at: Timestamp,
    /// The file may be that of the next server from then on.
    is_removed: AtomicBool,
}

impl PublishedServer {
    /// Writes the entry. It exists until [`remove`](Self::remove), or until no request needs it.
    pub(crate) fn new(app: &App, url: String, token: Secret) -> Result<Self, AppError> {
        let published = Self {
            path: ServerRecord::path(&app.state_dir()?),
            url,
            started_at: app.clock().now(),
            is_removed: AtomicBool::new(false),
        };
        published.replace_token(token)?;
        Ok(published)
    }

    /// Replaces the token in the entry.
    pub(crate) fn replace_token(&self, token: Secret) -> Result<(), AppError> {
        let record = ServerRecord {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            url: self.url.clone(),
            token,
            started_at: self.started_at,
        };
        Ok(record.write(&self.path)?)
    }

    /// Removes the entry when the server ends.
    pub(crate) fn remove(&self) {
        if self.is_removed.swap(true, Ordering::AcqRel) {
            return;
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove `{}`", self.path.display());
            }
            Ok(()) | Err(_) => {}
        }
    }
}

impl Drop for PublishedServer {
    fn drop(&mut self) {
        self.remove();
    }
}
