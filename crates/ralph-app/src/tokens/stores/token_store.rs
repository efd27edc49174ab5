//! What all places share.

use std::fmt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use ralph_core::secret::Secret;
use ralph_engine::durable::StoreError;

use super::program::KeyringProgramError;
use crate::tokens::TokenSlot;

/// Where a credential was found or put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenStoreKind {
    /// The macOS keychain.
    Keychain,
    /// The Linux keyring.
    SecretTool,
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
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

/// Why a place could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    /// A program could not be used.
    #[error(transparent)]
    Program(#[from] KeyringProgramError),
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] StoreError),
    /// Others can get at the file or its directory.
    #[error("`{}` has the mode {mode:04o}, at most {allowed:04o} is allowed", path.display())]
    TooPermissive {
        /// Which one.
        path: PathBuf,
        /// How it is.
        mode: u32,
        /// How it may be.
        allowed: u32,
    },
    /// The file or its directory is something else.
    #[error("`{}` is not {wanted} of this user", path.display())]
    Untrusted {
        /// Which one.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// The place said that it kept the value and then did not give it back.
    #[error("{place} did not give back what was put there")]
    NotReadBack {
        /// Which place.
        place: TokenStoreKind,
    },
    /// The value is longer than the place takes.
    #[error("the token makes a command of {bytes} bytes, `security` reads at most {most}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
}

impl TokenStoreError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::TooPermissive { path, allowed, .. } => {
                format!("run: chmod {allowed:o} {}", path.display())
            }
            Self::Untrusted { path, .. } => format!("move `{}` away", path.display()),
            Self::TooLong { .. } => "keep it in a file with `--store file`".to_owned(),
            Self::Program(_) | Self::NotReadBack { .. } => {
                "unlock the keyring, or keep the token in a file with `--store file`".to_owned()
            }
        }
    }

    /// Returns a closure for `map_err` that says what was being done to which file.
    pub(super) fn while_doing(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let when = StoreError::when(doing, path);
        move |source| Self::File(when(source))
    }
}

/// A place that keeps credentials.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Returns where a credential is, or would be.
    fn kind(&self, slot: &TokenSlot) -> TokenStoreKind;
    /// Returns what is kept, if anything is.
    async fn load(&self, slot: &TokenSlot) -> Result<Option<Secret>, TokenStoreError>;
    /// Keeps a value instead of what was kept before. It has been read back when this returns.
    async fn save(&self, slot: &TokenSlot, value: &Secret) -> Result<(), TokenStoreError>;
}
