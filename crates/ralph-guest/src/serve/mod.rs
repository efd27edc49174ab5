//! The guest: the first process of a container, which serves the requests of the host.
//!
//! One connection is one session. When it ends, the guest exits and the container stops with it, so
//! a command never outlives its ralph.
//!
//! - `settings` are its arguments; `user` selects the user of commands.
//! - `start` prepares the sandbox and connects to the host; `session` answers its requests.
//! - `exec` runs commands, `transfer` moves files, `listen` relays connections from inside.
//! - `disk` ends commands that fill the disk: `usage` measures files, `unlinked` those without a
//!   name; `shared_memory` removes leftovers of commands.

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
