//! The stores of credentials. Each has a file; [`TokenStore`] is their common interface.
//!
//! - [`Keychain`] uses the macOS keychain through `security`.
//! - [`SecretTool`] uses the Linux keyring through `secret-tool`.
//! - [`gh_login`] reads the token of GitHub's own program.
//! - [`TokenFiles`] uses files that only the user can read. They are not encrypted.

mod gh;
mod keychain;
mod program;
mod secret_tool;
mod token_files;
mod token_store;

pub use gh::{GhLogin, gh_login};
pub use keychain::Keychain;
pub use program::{KeyringProgramError, find_program};
pub use secret_tool::SecretTool;
pub use token_files::TokenFiles;
pub use token_store::{TokenStore, TokenStoreError, TokenStoreKind};
