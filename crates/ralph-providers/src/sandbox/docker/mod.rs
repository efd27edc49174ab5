//! The Docker sandbox: a container without a network, with the guest as its first process.
//!
//! What there is on the engine for one sandbox:
//!
//! ```text
//! volume    ralph-0123456789ab        repo/ scratch/ home/ tmp/, and the sandbox's marks as labels
//! container ralph-0123456789ab        may be killed and made again; the volume is the sandbox. It
//!                                     ends with the connection, so with the ralph that made it
//! volume    ralph-guest-<digest>      the guest's program, read-only, shared by all sandboxes
//! ```
//!
//! - `provider` makes, finds and lists sandboxes; `settings` is what it is made from, `marks` are
//!   the labels, `owner` tells whether the ralph that made a sandbox still lives.
//! - `container` is the container's life, `form` what it is created as, `program` the guest's volume,
//!   `prune` finds programs that nothing uses any more.
//! - `line` is the connection to the guest, by a socket or by the container's own input and output;
//!   `door` is that socket.
//! - `sandbox` is the live handle; `exec` runs commands, `trouble` finds out what became of a
//!   container that stopped answering.

mod container;
mod container_spec;
mod exec;
mod guest_connection;
mod guest_socket;
mod guest_volume;
mod labels;
mod owner_process;
mod provider;
mod prune;
mod recovery;
mod sandbox;
mod settings;

pub use provider::{DockerProvider, ExistingSandbox};
pub use prune::UnusedVolume;
pub use settings::{DockerLimits, DockerSettings, DockerTransport};
