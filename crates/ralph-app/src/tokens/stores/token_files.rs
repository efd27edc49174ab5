//! Files that only the user can read. They are not encrypted.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use ralph_core::secret::Secret;
use ralph_engine::durable;
use rustix::fs::{Mode, OFlags};

use super::token_store::{TokenStore, TokenStoreError, TokenStoreKind};
use crate::tokens::TokenSlot;

/// The number of bytes of a file that are read.
const MAX_BYTES: usize = 64 << 10;

/// A directory with a file per credential.
#[derive(Debug)]
pub struct TokenFiles {
    directory: PathBuf,
}

impl TokenFiles {
    /// Creates access to the credentials in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Removes a credential, if it exists.
    pub fn remove(&self, slot: &TokenSlot) -> Result<(), TokenStoreError> {
        let path = self.path(slot);
        match fs::remove_file(&path) {
            Ok(()) => Ok(durable::sync_dir(&self.directory)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(TokenStoreError::while_doing("remove", &path)(error)),
        }
    }

    fn path(&self, slot: &TokenSlot) -> PathBuf {
        self.directory
            .join(format!("{}.json", slot.keyring_service()))
    }

    fn read(&self, slot: &TokenSlot) -> Result<Option<Secret>, TokenStoreError> {
        let path = self.path(slot);
        // Does not follow symbolic links, and does not wait for the writer of a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP) => return Err(untrusted(&path, "a file")),
            Err(error) => return Err(TokenStoreError::while_doing("open", &path)(error.into())),
        };
        self.check_directory()?;
        let found = file
            .metadata()
            .map_err(TokenStoreError::while_doing("inspect", &path))?;
        if !found.is_file() {
            return Err(untrusted(&path, "a file"));
        }
        check_permissions(&path, &found, "a file", 0o600)?;
        let mut text = String::with_capacity(MAX_BYTES);
        let read = (&mut file).take(MAX_BYTES as u64).read_to_string(&mut text);
        let text = Secret::new(text);
        read.map_err(TokenStoreError::while_doing("read", &path))?;
        Ok(Some(text))
    }

    fn check_directory(&self) -> Result<(), TokenStoreError> {
        let path = &self.directory;
        let found =
            fs::symlink_metadata(path).map_err(TokenStoreError::while_doing("inspect", path))?;
        if !found.is_dir() {
            return Err(untrusted(path, "a directory"));
        }
        check_permissions(path, &found, "a directory", 0o700)
    }
}

#[async_trait]
impl TokenStore for TokenFiles {
    fn kind(&self, slot: &TokenSlot) -> TokenStoreKind {
        TokenStoreKind::File(self.path(slot))
    }

    async fn load(&self, slot: &TokenSlot) -> Result<Option<Secret>, TokenStoreError> {
        self.read(slot)
    }

    async fn save(&self, slot: &TokenSlot, value: &Secret) -> Result<(), TokenStoreError> {
        durable::create_dir(&self.directory)?;
        self.check_directory()?;
        durable::write_shared(&self.path(slot), value.expose().as_bytes())?;
        let stored = self.read(slot)?;
        if stored.is_some_and(|stored| stored.expose() == value.expose()) {
            Ok(())
        } else {
            let store = self.kind(slot);
            Err(TokenStoreError::NotReadBack { store })
        }
    }
}

/// Rejects files that other users can access. Does not repair the permissions, because others may
/// have read the file already.
fn check_permissions(
    path: &Path,
    found: &Metadata,
    wanted: &'static str,
    allowed: u32,
) -> Result<(), TokenStoreError> {
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(untrusted(path, wanted));
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let path = path.to_owned();
        return Err(TokenStoreError::TooPermissive {
            path,
            mode,
            allowed,
        });
    }
    Ok(())
}

fn untrusted(path: &Path, wanted: &'static str) -> TokenStoreError {
    let path = path.to_owned();
    TokenStoreError::Untrusted { path, wanted }
}
