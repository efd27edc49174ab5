//! The guest: the first process of a container, which does what the host asks.
//!
//! One connection is one session. When it ends, the guest ends, and with it the whole container: a
//! command never outlives the ralph that watches it.
//!
//! - `settings` is what it is started with; `user` is whom commands run as.
//! - `start` prepares the sandbox and connects to the host; `session` answers its requests.
//! - `exec` runs commands, `transfer` moves files, `listen` relays connections from inside.
//! - `disk` ends what fills the disk: `usage` measures files,
//!   `unlinked` those without a name; `shared_memory` removes what commands leave there.

mod disk;
mod exec;
mod guest;
mod idle_timeout;
mod listen;
mod session;
mod settings;
mod shared_memory;
mod start;
mod transfer;
mod unlinked;
mod usage;
mod user;

pub use guest::Guest;
pub use session::serve_connection;
pub use settings::{GuestSettings, Transport, UsageError};
pub use start::run;
