//! File operations confined to one directory.
//!
//! Paths and links are resolved by `cap-std`, which refuses everything that leaves the directory;
//! only regular files are opened. The operations block: each takes a few system calls, and large
//! files are transferred in chunks.
//!
//! - `confined_dir` is the directory; `read`, `write` and `list` are its operations, `remove`
//!   removes whole directories, `layout` restores the standard directories of a sandbox; `error` is
//!   the reason for a refusal.

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
