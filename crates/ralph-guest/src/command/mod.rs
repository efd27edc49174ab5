//! Runs one command and cleans up everything it leaves behind.
//!
//! - `spawn` starts a command and `supervise` runs it; `invocation` is its command line,
//!   `find_program` locates its file, `pipes` transfers input and output, `owned_pipes` creates
//!   pipes for another user, `outcome` describes its end; `process_tree` owns its processes.
//! - `mark` is the number carried by every process of a command, `procfs` reads it, `sweep` finds
//!   and kills the processes that carry it, `running_commands` tracks the commands that are
//!   running.
//! - `environment` builds the environment of a command.

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

pub use environment::{CACHE, HOME, TMP, command_environment};
pub use find_program::find_program;
pub use invocation::{CommandLine, InputMode, Invocation};
pub use mark::{CommandMark, Marking, SandboxName};
pub use outcome::{CommandEnd, CommandOutcome, CommandStream};
pub use pipes::{CHUNK_BYTES, CommandInputSource, CommandOutputSink};
pub use process_tree::{ProcessTree, kill_processes};
pub use spawn::{SpawnOptions, User};
pub use supervise::{CommandBounds, no_watchdog, supervise};
pub use sweep::{ProcessOwner, adopt_orphans};
