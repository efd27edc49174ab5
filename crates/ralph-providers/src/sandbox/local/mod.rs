//! The local sandbox: a directory, a clean environment, and a process tree per command.
//!
//! Files below the provider's root:
//!
//! ```text
//! local-0123456789ab/          one sandbox, accessible only to its owner
//!   repo/ scratch/             the targets of sandbox paths
//!   home/ tmp/                 $HOME and $TMPDIR of the commands
//!   cache/                     caches of package managers
//!   scratch/session/           $HOME and $TMPDIR of the running agent session
//! local-0123456789ab.json      its labels and environment, inaccessible to commands
//! ```
//!
//! - `provider` creates, finds and lists sandboxes; `record` is the file next to each.
//! - `sandbox` is the live handle; `host` is the part of the host that commands can use.
//! - `confinement` starts commands through a launcher that hides ralph's own files; `cgroup` limits
//!   them.
//!
//! Running commands and confining file access is implemented in `ralph_guest`, which the guest
//! inside a container shares.

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
