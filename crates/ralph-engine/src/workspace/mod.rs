//! The files of a run: the host's copies, which are authoritative, and their projection in the
//! sandbox, which the agent can write. A difference is reverted and reported, unless the agent may
//! write the file.

mod directories;
mod files;
mod guard;
mod inspect;

pub(crate) use guard::repo_path;

pub(crate) use files::repair_logs;
pub use files::{FILE_OWNERS, HostFiles, RunFileOwner, SPEC_FILE};
pub use inspect::{TamperFinding, Workspace};

#[cfg(test)]
mod tests;
