//! Source hosts, which receive branches and pull requests.
//!
//! - [`LocalScm`] supports any local repository. Its pull requests are records in the state
//!   directory, one [`PullRecord`] per file.
//! - [`github`] is the client of GitHub's API.

pub mod github;
mod local;
mod pull_store;
mod record;
mod url;
mod worktree;

pub use local::LocalScm;
pub use record::PullRecord;
pub use worktree::GitProgram;
