//! One command, from its command line to whatever it left behind.
//!
//! - `start` starts a command and `exec` attends it; `invocation` is its command line, `programs` finds its file, `pipes`
//!   feeds it and takes its output, `owned_pipes` creates them for another user, `ended` is how it ended; `tree` owns its processes.
//! - `mark` is the number that every process of a command carries, `procfs` reads it back, `sweep`
//!   finds and ends the processes that carry it, `live` knows the commands that run right now.
//! - `environment` is what a command finds in its environment.

mod ended;
mod environment;
mod exec;
mod invocation;
mod live;
mod mark;
mod owned_pipes;
mod pipes;
#[cfg(target_os = "linux")]
mod procfs;
mod programs;
mod start;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(not(target_os = "linux"))]
#[path = "sweep_groups.rs"]
mod sweep;
mod tree;

pub use ended::{Ended, Outcome, Stream};
pub use environment::{HOME, TMP, of_command};
pub use exec::{Bounds, attend, never};
pub use invocation::{Input, Invocation, Program};
pub use mark::{Mark, Marking, Name};
pub use pipes::{CHUNK_BYTES, Sink, Source};
pub use programs::find;
pub use start::{Start, User};
pub use sweep::{Owner, adopt_orphans};
pub use tree::{Tree, kill};
