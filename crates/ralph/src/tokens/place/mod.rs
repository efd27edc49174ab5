//! The places where a credential is kept. Each has its file; [`TokenStore`] is what they share.
//!
//! - [`Keychain`] speaks to the macOS keychain through `security`.
//! - [`SecretTool`] speaks to the Linux keyring through `secret-tool`.
//! - [`TokenFiles`] keeps files that only the user can read. They are not encrypted.

mod file;
mod keychain;
mod program;
mod secret_tool;
mod store;

pub use file::TokenFiles;
pub use keychain::Keychain;
pub use program::{ProgramError, find_program};
pub use secret_tool::SecretTool;
pub use store::{Place, PlaceError, TokenStore};
