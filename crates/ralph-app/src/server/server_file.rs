//! `server.json` in the state directory: the address and the token of its server, for programs of the
//! same user.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ralph_core::secret::Secret;
use ralph_engine::durable::{self, StoreError};
use serde::Deserialize;

use crate::error::AppError;

/// The address and the token of a server.
#[derive(Debug)]
pub struct ServerFile {
    pub pid: u32,
    pub url: String,
    pub token: Secret,
    pub started_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct FileContent {
    pid: u32,
    url: String,
    token: String,
    #[serde(default)]
    started_at: Option<Timestamp>,
}

impl ServerFile {
    /// Returns the path of the file in a state directory.
    pub fn path(root: &Path) -> PathBuf {
        root.join("server.json")
    }

    /// Reads the file if it exists. A file that another user can read or write is an error, because its
    /// address could be another program's.
    pub fn read(root: &Path) -> Result<Option<Self>, AppError> {
        let path = Self::path(root);
        let Some(bytes) = durable::read_if_present(&path)? else {
            return Ok(None);
        };
        let metadata = fs::metadata(&path).map_err(StoreError::when("inspect", &path))?;
        let is_private = metadata.permissions().mode() & 0o077 == 0;
        if !is_private || metadata.uid() != rustix::process::getuid().as_raw() {
            return Err(AppError::runtime(
                format!("the server of `{}` is not used", path.display()),
                "the file is accessible to other users",
                "remove the file and start the server again, or use `--local`",
            ));
        }
        let content: FileContent = serde_json::from_slice(&bytes)
            .map_err(std::io::Error::from)
            .map_err(StoreError::when("parse", &path))?;
        Ok(Some(Self {
            pid: content.pid,
            url: content.url,
            token: Secret::new(content.token),
            started_at: content.started_at,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(ServerFile::read(root.path()).unwrap().is_none());
        let path = ServerFile::path(root.path());
        let text = r#"{"pid":7,"url":"http://127.0.0.1:1","token":"t","started_at":"2026-03-01T10:00:00Z"}"#;
        durable::write(&path, text.as_bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let file = ServerFile::read(root.path()).unwrap().unwrap();
        assert_eq!((file.pid, file.url.as_str()), (7, "http://127.0.0.1:1"));
        assert_eq!(file.token.expose(), "t");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = ServerFile::read(root.path()).unwrap_err();
        assert_eq!(error.why, "the file is accessible to other users");
    }
}
