//! Publishes the server in the state directory while it runs.

use std::fs;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use ralph_app::{App, AppError, ServerRecord};
use ralph_core::secret::Secret;

/// The entry of a server in the state directory.
#[derive(Debug)]
pub(crate) struct PublishedServer {
    path: PathBuf,
    url: String,
    started_at: Timestamp,
}

impl PublishedServer {
    pub(crate) fn new(app: &App, url: String) -> Result<Self, AppError> {
        Ok(Self {
            path: ServerRecord::path(&app.state_dir()?),
            url,
            started_at: app.clock().now(),
        })
    }

    /// Writes the entry, or replaces it after the token changed.
    pub(crate) fn publish(&self, token: Secret) -> Result<(), AppError> {
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
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove `{}`", self.path.display());
            }
            Ok(()) | Err(_) => {}
        }
    }
}
