//! The common interface of all stores.

use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use ralph_core::secret::Secret;
use ralph_engine::durable::StoreError;

use super::program::KeyringProgramError;
use crate::tokens::TokenSlot;

/// A store of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenStoreKind {
    /// The macOS keychain.
    Keychain,
    /// The Linux keyring.
    SecretTool,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Variable(&'static str),
}

impl fmt::Display for TokenStoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keychain => f.write_str("the macOS keychain"),
            Self::SecretTool => f.write_str("the keyring"),
            Self::File(path) => write!(f, "`{}`", path.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// The reason why a store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    /// A program could not be used.
    #[error(transparent)]
    Program(#[from] KeyringProgramError),
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] StoreError),
    /// Other users can access the file or its directory.
    #[error("`{}` has the mode {mode:04o}, at most {allowed:04o} is allowed", path.display())]
    TooPermissive {
        path: PathBuf,
        mode: u32,
        allowed: u32,
    },
    /// The file or its directory has another type or owner.
    #[error("`{}` is not {wanted} owned by this user", path.display())]
    Untrusted {
        path: PathBuf,
        /// The expected type.
        wanted: &'static str,
    },
    /// The store reported success but did not return the value.
    #[error("{store} did not return the stored token")]
    NotReadBack { store: TokenStoreKind },
    /// The value is too long for the store.
    #[error("the token requires a command of {bytes} bytes, `security` reads at most {limit}")]
    TooLong { bytes: usize, limit: usize },
}

impl TokenStoreError {
    /// Returns the fix for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::TooPermissive { path, allowed, .. } => {
                format!("run: chmod {allowed:o} {}", path.display())
            }
            Self::Untrusted { path, .. } => format!("move `{}` away", path.display()),
            Self::TooLong { .. } => "store it in a file with `--store file`".to_owned(),
            Self::Program(_) | Self::NotReadBack { .. } => {
                "unlock the keyring, or store the token in a file with `--store file`".to_owned()
            }
        }
    }

    /// Returns a closure for `map_err` that adds the operation and the file.
    pub(super) fn while_doing(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let when = StoreError::when(doing, path);
        move |source| Self::File(when(source))
    }
}

/// A store of credentials.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Returns the location of a credential, whether or not it exists.
    fn kind(&self, slot: &TokenSlot) -> TokenStoreKind;
    /// Returns the stored value, if it exists.
    async fn load(&self, slot: &TokenSlot) -> Result<Option<Secret>, TokenStoreError>;
    /// Stores a value, replaces an earlier one, and verifies it by reading it back.
    async fn save(&self, slot: &TokenSlot, value: &Secret) -> Result<(), TokenStoreError>;
}
