//! Source hosts: where branches are pushed and pull requests live.
//!
//! - [`LocalScm`] takes any repository by its path. Its pull requests are records, one
//!   [`PullRecord`] per file, in the state directory.

mod local;
mod pull_store;
mod record;
mod url;
mod worktree;

pub use local::LocalScm;
pub use record::PullRecord;
pub use worktree::GitProgram;
