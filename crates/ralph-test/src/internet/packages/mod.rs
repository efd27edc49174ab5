//! Fills sites with what package managers look for. Every package has one file, which says `HELLO`.
//!
//! - [`python`] is an index for pip, [`npm`] a registry for npm, [`cargo`] a sparse one for cargo.
//! - [`apt`] is a flat repository for apt, [`git`] a repository for git.
//! - `archive` packs files the ways that these want them.

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

/// What the file in every package says.
pub const HELLO: &str = "hello from the fake internet";
