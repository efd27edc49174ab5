//! `server.json` in the state directory: how other commands of this user find a running server.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::secret::Secret;
use ralph_engine::durable::{self, StoreError};
use ralph_engine::store::StateDir;
use serde::{Deserialize, Serialize};

use crate::error::AppError;

/// A running server, as its record describes it.
#[derive(Debug)]
pub struct ServerRecord {
    pub pid: i32,
    /// The address for programs on this machine, without a slash at the end.
    pub url: String,
    /// The token of programs.
    pub token: Secret,
    pub started_at: Timestamp,
}

/// The format of the file.
#[derive(Serialize, Deserialize)]
struct ServerRecordFile {
    pid: i32,
    url: String,
    token: String,
    started_at: Timestamp,
}

impl ServerRecord {
    /// Returns the path of the record.
    pub fn path(state: &StateDir) -> PathBuf {
        state.root().join("server.json")
    }

    /// Reads the record. A server that crashed leaves one, so its process may be gone.
    pub fn read(state: &StateDir) -> Result<Option<Self>, AppError> {
        let path = Self::path(state);
        let Some(bytes) = durable::read_if_present(&path)? else {
            return Ok(None);
        };
        require_private(&path)?;
        let file: ServerRecordFile = serde_json::from_slice(&bytes).map_err(|error| {
            AppError::runtime(
                format!("cannot use `{}`", path.display()),
                error.to_string(),
                "end the server, remove the file, and start the server again",
            )
        })?;
        Ok(Some(Self {
            pid: file.pid,
            url: file.url,
            token: Secret::new(file.token),
            started_at: file.started_at,
        }))
    }

    /// Writes the record, readable only by this user.
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        let file = ServerRecordFile {
            pid: self.pid,
            url: self.url.clone(),
            token: self.token.expose().to_owned(),
            started_at: self.started_at,
        };
        let text = serde_json::to_string(&file)
            .map_err(io::Error::from)
            .map_err(StoreError::when("write", path))?;
        let text = Secret::new(text + "\n");
        durable::write(path, text.expose().as_bytes())
    }
}

/// Refuses a record that other users can read or write: its address could be another program's.
fn require_private(path: &Path) -> Result<(), AppError> {
    let metadata = fs::metadata(path).map_err(StoreError::when("inspect", path))?;
    let is_own = metadata.uid() == rustix::process::getuid().as_raw();
    let is_shared = metadata.mode() & 0o077 != 0;
    if is_own && !is_shared {
        return Ok(());
    }
    Err(AppError::runtime(
        format!("cannot use `{}`", path.display()),
        "it is accessible to other users",
        "end the server, remove the file, and start the server again",
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_record_is_private_and_read_back() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::open(home.path().to_owned()).unwrap();
        assert!(ServerRecord::read(&state).unwrap().is_none());
        let record = ServerRecord {
            pid: 12,
            url: "http://127.0.0.1:8000".into(),
            token: Secret::new("t".repeat(43)),
            started_at: "2026-03-01T10:00:00Z".parse().unwrap(),
        };
        let path = ServerRecord::path(&state);
        record.write(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let found = ServerRecord::read(&state).unwrap().unwrap();
        assert_eq!(found.token.expose(), record.token.expose());
        assert_eq!(
            (found.pid, &found.url, found.started_at),
            (record.pid, &record.url, record.started_at)
        );
        std::fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = ServerRecord::read(&state).unwrap_err();
        assert_eq!(error.why, "it is accessible to other users");
        record.write(&path).unwrap();
        std::fs::write(&path, "{").unwrap();
        assert!(ServerRecord::read(&state).is_err());
    }
}
