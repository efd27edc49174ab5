//! The whole program, from the command line to the files and the branch it leaves.

mod holding;
mod project;
