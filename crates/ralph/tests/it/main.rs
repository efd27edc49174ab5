//! The whole program, from the command line to the files and the branch it leaves.

mod contract;
mod holding;
mod project;
mod secrets;
mod steering;
mod verdicts;
