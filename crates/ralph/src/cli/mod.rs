//! The command line: one file per command, each a function from its arguments and the [`Context`] to
//! an [`ExitCode`] or a [`CliError`].
//!
//! - [`args`] is what can be typed, `usage` turns clap's refusals into one line.
//! - [`main`] parses first and reads the environment only then, so that `--help` costs nothing.
//! - [`CliError`] is what people read when something went wrong, [`ExitCode`] what scripts read.
//! - `summary` is the JSON shape of a run that `runs` and `show` share.

pub mod args;
mod audit;
mod completions;
mod container;
mod context;
mod demo;
mod dispatch;
mod drive;
mod error;
mod exit;
mod init;
mod lint;
mod logs;
mod models;
mod output;
mod planning;
mod profile;
mod replay;
mod resume;
mod run;
mod runs;
mod show;
mod steer;
mod summary;
mod unfinished;
mod usage;

pub use context::Context;
pub use dispatch::main;
pub use error::CliError;
pub use exit::ExitCode;
pub use output::Output;
pub use summary::Summary;
