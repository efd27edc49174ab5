//! The program `ralph`: its command line, and the output on a terminal. Everything else is in [`ralph_app`].
//!
//! - [`cli`] reads the arguments and has one file per command; messages and exit codes are its API.
//! - [`terminal`] shows the records of a run to a person, and lets nothing through that a terminal
//!   would obey.

pub mod cli;
pub mod diagnostics_log;
pub mod terminal;
