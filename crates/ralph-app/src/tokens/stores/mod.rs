//! The stores of credentials. Each has a file; [`TokenStore`] is their common interface.
//!
//! - [`Keychain`] uses the macOS keychain through `security`.
//! - [`SecretTool`] uses the Linux keyring through `secret-tool`.
//! - [`TokenFiles`] uses files that only the user can read. They are not encrypted.

mod keychain;
mod program;
mod secret_tool;
mod token_files;
mod token_store;

pub use keychain::Keychain;
pub use program::{KeyringProgramError, find_program};
pub use secret_tool::SecretTool;
pub use token_files::TokenFiles;
pub use token_store::{TokenStore, TokenStoreError, TokenStoreKind};
