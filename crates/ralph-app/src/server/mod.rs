//! The server of a state directory, as files and as a peer.
//!
//! - [`StateLock`] makes a process the only server of a state directory.
//! - [`ServerClient`] sends it requests, for commands that hand their run over.
//! - [`ServerQueue`] are the runs that wait for a worker, for commands that show runs.
//! - [`environment`] compares the environment of a command with that of the server.

mod client;
pub mod environment;
mod queue;
mod state_lock;

pub use client::{ServerClient, ServerReply};
pub use queue::ServerQueue;
pub use state_lock::{LockOwner, StateLock};
