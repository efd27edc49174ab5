//! `ralph serve`: works on many runs, and serves them to browsers and programs.
//!
//! `args` has the command line, `command` starts the server, `running` asks the running one, `browser` opens
//! the login link, `machine_state` describes what runs can use.

mod args;
mod browser;
mod command;
mod machine_state;
mod running;

pub(super) use args::ServeArgs;
pub(super) use command::{block_on, run, serve_until_signal};
