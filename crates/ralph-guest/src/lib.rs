//! What runs commands and keeps files: as the first process of a container, and on the host itself.
//!
//! - [`command`] runs one command to its end and leaves nothing of it behind. The local sandbox
//!   uses it on the host, the guest inside of a container.
//! - [`files`] reads, writes, lists and removes below one directory, and nothing leads out of it.
//! - [`probe`] probes the network from inside of a sandbox.
//! - [`running_time`] measures the time without stops of the process and sleep of the machine.
//! - [`wire`] is how the host and the guest speak: many streams over one connection.
//! - [`cgroup`] reads what the kernel refused to a command.
//! - `launch` confines a command of the local sandbox before it starts.
//! - [`serve`] is the guest: it answers requests of the host.
//!
//! This crate knows nothing of runs, tasks or models, so that the program that is put into every
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
