//! The program `ralph`: its command line and its terminal output. Everything else is in
//! [`ralph_app`].
//!
//! - [`cli`] parses the arguments and has one file per command; messages and exit codes are its
//!   API.
//! - [`terminal`] shows the records of a run, and removes everything that would control a terminal.

pub mod cli;
pub mod diagnostics_log;
pub mod terminal;
