//! Sites for package managers. Every package has one file that contains `HELLO`.
//!
//! - [`python`] is an index for pip, [`npm`] a registry for npm, [`cargo`] a sparse one for cargo.
//! - [`apt`] is a flat repository for apt, [`git`] a repository for git.
//! - `archive` creates the package archives.

mod apt;
mod archive;
mod cargo;
mod git;
mod npm;
mod python;

pub use apt::apt;
pub use cargo::cargo;
pub use git::git;
pub use npm::npm;
pub use python::python;

/// The content of the file in every package.
pub const HELLO: &str = "hello from the fake internet";
