//! `ralph serve`: works on many runs, and serves them to browsers and programs.
//!
//! `args` has the command line, `command` starts the server or asks the running one, `browser` opens the
//! login link.

mod args;
mod browser;
mod command;

pub(super) use args::ServeArgs;
pub(super) use command::run;
