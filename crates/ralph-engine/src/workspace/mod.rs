//! The files of a run: the host's copies, which decide, and their projection in the sandbox, which
//! the agent can write. A difference is put back and told, except where the agent may write.

mod directories;
mod files;
mod guard;
mod inspect;

pub(crate) use guard::repo_path;

pub(crate) use files::repair_logs;
pub use files::{FILE_OWNERS, HostFiles, RunFileOwner};
pub use inspect::{TamperFinding, Workspace};

#[cfg(test)]
mod tests;
