//! Files below one directory, with nothing that leads out of it.
//!
//! Paths and links are followed by `cap-std`, which refuses whatever leaves the directory; nothing
//! but regular files is opened. The operations block: each is a handful of system calls, and a
//! caller with large files goes piece by piece.
//!
//! - `place` is the directory; `read`, `write` and `list` are what is done in it, `erase` removes
//!   whole directories, `furnish` puts back those that every sandbox has; `refusal` is why something was not done.

mod erase;
mod furnish;
mod list;
mod place;
mod read;
mod refusal;
mod write;

pub use erase::erase;
pub use list::{Entry, EntryKind};
pub use place::{Owner, Place, sync_filesystem};
pub use read::Reading;
pub use refusal::{Refusal, is_escape};
pub use write::Writing;
