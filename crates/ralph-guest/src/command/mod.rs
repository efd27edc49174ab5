//! One command, from its command line to whatever it left behind.
//!
//! - `start` starts a command and `exec` attends it; `invocation` is its command line, `programs` finds its file, `pipes`
//!   feeds it and takes its output, `owned_pipes` creates them for another user, `ended` is how it ended; `tree` owns its processes.
//! - `mark` is the number that every process of a command carries, `procfs` reads it back, `sweep`
//!   finds and ends the processes that carry it, `live` knows the commands that run right now.
//! - `environment` is what a command finds in its environment.

mod environment;
mod find_program;
mod invocation;
mod mark;
mod outcome;
mod owned_pipes;
mod pipes;
mod process_tree;
#[cfg(target_os = "linux")]
mod procfs;
mod running_commands;
mod spawn;
mod supervise;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(not(target_os = "linux"))]
#[path = "sweep_groups.rs"]
mod sweep;

pub use environment::{HOME, TMP, command_environment};
pub use find_program::find_program;
pub use invocation::{CommandLine, InputMode, Invocation};
pub use mark::{CommandMark, Marking, SandboxName};
pub use outcome::{CommandEnd, CommandOutcome, CommandStream};
pub use pipes::{CHUNK_BYTES, CommandInputSource, CommandOutputSink};
pub use process_tree::{ProcessTree, kill_processes};
pub use spawn::{SpawnOptions, User};
pub use supervise::{CommandBounds, no_watchdog, supervise};
pub use sweep::{ProcessOwner, adopt_orphans};
