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
//! - `sandbox` is the live handle; `files` reads and writes, `erase` removes whole directories,
//!   `refusal` says which error a refused path is.
//! - `exec` runs one command; `invocation` is its command line, `programs` finds its file; `pipes`
//!   feeds it and takes its output; `tree` owns its processes.
//! - `mark` is the number that every process of a command carries, `procfs` reads it back, `sweep`
//!   finds and ends the processes that carry it, `live` knows the commands that run right now.

mod environment;
mod erase;
mod exec;
mod files;
mod host;
mod invocation;
mod live;
mod mark;
mod pipes;
#[cfg(target_os = "linux")]
mod procfs;
mod programs;
mod provider;
mod record;
mod refusal;
mod sandbox;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(not(target_os = "linux"))]
#[path = "sweep_groups.rs"]
mod sweep;
mod tree;

pub use provider::LocalProvider;
