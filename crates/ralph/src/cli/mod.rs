//! The command line: one file per command, each a function from its arguments and the [`Context`] to
//! an [`ExitCode`] or a [`AppError`](ralph_app::AppError).
//!
//! - `command_line` lists the commands, each has its arguments beside it; `argument_order` puts the command first,
//!   `usage` turns clap's errors into one line.
//! - [`main`] parses first and reads the environment only then, so that `--help` costs nothing.
//! - [`CliOutput`] prints, [`ExitCode`] is what scripts read, `questions` asks on a terminal.
//! - `checks` is what `preflight` and `selftest` print.

mod allow;
mod argument_order;
mod attach;
mod audit;
mod checks;
mod command_line;
mod completions;
mod context;
mod debug;
mod demo;
mod diagnose;
mod dispatch;
mod drive;
mod duration;
mod exit;
mod export;
mod image;
mod init;
mod lint;
mod logs;
mod models;
mod output;
mod preflight;
mod profile;
mod proxy;
mod prune;
mod questions;
#[cfg(test)]
mod reference;
mod replay;
mod resume;
mod run;
mod run_arg;
mod runs;
mod selftest;
mod show;
mod show_steering;
mod steer;
mod task;
mod tokens;
mod trust;
mod update_prices;
mod usage;

pub use context::Context;
pub use dispatch::main;
pub use exit::ExitCode;
pub use output::CliOutput;
