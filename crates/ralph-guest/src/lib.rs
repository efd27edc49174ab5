//! Runs commands and file operations, both as the first process of a container and on the host.
//!
//! - [`command`] runs one command and cleans up its processes. The local sandbox uses it on the
//!   host, the guest inside a container.
//! - [`files`] reads, writes, lists and removes files, confined to one directory.
//! - [`probe`] probes the network from inside a sandbox.
//! - [`running_time`] measures time without stops of the process and sleep of the machine.
//! - [`wire`] is the protocol between host and guest: many streams over one connection.
//! - [`cgroup`] reads the resources that the kernel refused to a command.
//! - `launch` confines a command of the local sandbox before it starts.
//! - [`serve`] is the guest, which answers requests of the host.
//!
//! This crate does not depend on runs, tasks or models, so that the program copied into every
//! container stays small.

pub mod cgroup;
pub mod command;
pub mod files;
#[cfg(target_os = "linux")]
pub mod launch;
pub mod probe;
pub mod running_time;
#[cfg(target_os = "linux")]
pub mod serve;
mod tolerated;
pub mod wire;

pub use tolerated::{available, best_effort};
