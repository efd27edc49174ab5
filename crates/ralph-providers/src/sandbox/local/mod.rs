//! The local sandbox: a directory, a clean environment, and a process tree per command.
//!
//! What is on disk, below the provider's root:
//!
//! ```text
//! local-0123456789ab/          one sandbox, for its owner alone
//!   repo/ scratch/             what sandbox paths lead to
//!   home/ tmp/                 $HOME and $TMPDIR of the commands
//! local-0123456789ab.json      its labels and its environment, out of the way of commands
//! ```
//!
//! - `provider` makes, finds and lists sandboxes; `record` is the file beside each.
//! - `sandbox` is the live handle; `host` is what commands get from the machine.
//! - `confinement` starts commands through a launcher that keeps them from ralph's own files;
//!   `cgroup` limits them.
//!
//! How a command is run and how files are confined is in `ralph_guest`, because the guest inside of
//! a container does the same.

mod cgroup;
#[cfg(target_os = "linux")]
mod confinement;
#[cfg(not(target_os = "linux"))]
#[path = "unconfined.rs"]
mod confinement;
mod host;
mod name;
mod provider;
mod record;
mod sandbox;

pub use provider::{LocalLimits, LocalProvider};
