//! The stream of the events of all runs.
//!
//! The index numbers the new records of all runs in its feed; the journals contain them. [`FeedTail`]
//! encodes the newest ones for all readers, `entry` reads those of one entry, and a [`FeedReader`] is the
//! position of one client. A [`StreamCursor`] names a position for a client that comes back.

mod cursor;
mod entry;
mod reader;
mod tail;

pub(crate) use cursor::FeedStart;
pub(super) use reader::FeedReader;
pub(super) use tail::FeedTail;
