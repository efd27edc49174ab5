//! Files below one directory, with nothing that leads out of it.
//!
//! Paths and links are followed by `cap-std`, which refuses whatever leaves the directory; nothing
//! but regular files is opened. The operations block: each is a handful of system calls, and a
//! caller with large files goes piece by piece.
//!
//! - `place` is the directory; `read`, `write` and `list` are what is done in it, `erase` removes
//!   whole directories, `furnish` puts back those that every sandbox has; `refusal` is why something was not done.

mod confined_dir;
mod error;
mod layout;
mod list;
mod read;
mod remove;
mod write;

pub use confined_dir::{ConfinedDir, FileOwner, sync_filesystem};
pub use error::{ConfinedFileError, is_escape};
pub use list::{GuestDirEntry, GuestEntryKind};
pub use read::FileReader;
pub use remove::remove_entry;
pub use write::FileWriter;
