//! The Docker sandbox: a container without a network, with the guest as its first process.
//!
//! Objects on the Docker Engine per sandbox:
//!
//! ```text
//! volume    ralph-0123456789ab        the same directories as in `local`, and the sandbox's labels
//! container ralph-0123456789ab        replaceable; the volume is the sandbox. It ends with
//!                                     the connection, so with the ralph that created it
//! volume    ralph-guest-<digest>      the guest's program, read-only, shared by all sandboxes
//! ```
//!
//! - `provider` creates, finds and lists sandboxes; `settings` configures it, `labels` are the
//!   labels.
//! - `container` is the container's lifecycle, `container_spec` its configuration, `guest_volume`
//!   the guest's volume; `prune` finds unused guest volumes.
//! - `guest_connection` is the connection to the guest, over a socket or the container's standard
//!   input and output; `guest_socket` is that socket.
//! - `sandbox` is the live handle; `exec` runs commands, `frozen_time` measures the time that no
//!   timeout counts, `recovery` diagnoses and restarts a
//!   container that stopped responding.

mod container;
mod container_spec;
mod exec;
mod frozen_time;
mod guest_connection;
mod guest_socket;
mod guest_volume;
mod labels;
mod provider;
mod prune;
mod recovery;
mod sandbox;
mod settings;

pub use provider::{DockerProvider, ExistingSandbox};
pub use prune::UnusedVolume;
pub use settings::{DockerLimits, DockerSettings, DockerTransport};
