//! The command line: one file per command, each a function from its arguments and the [`Context`] to
//! an [`ExitCode`] or a [`CliError`].
//!
//! - [`args`] is what can be typed, `order` puts the command first, `usage` turns clap's refusals into one line.
//! - [`main`] parses first and reads the environment only then, so that `--help` costs nothing.
//! - [`CliError`] is what people read when something went wrong, [`ExitCode`] what scripts read.
//! - `checks` is what `preflight` and `selftest` print.
//! - `summary` is the JSON shape of a run that `runs` and `show` share.

pub(crate) mod agent;
mod agent_script;
mod allow;
pub mod args;
mod argument_order;
mod audit;
mod checks;
mod completions;
mod container;
mod context;
mod create_run;
mod debug;
mod demo;
mod diagnose;
mod dispatch;
mod drive;
mod duration;
mod error;
mod exit;
mod export;
pub mod image;
mod init;
mod lint;
mod logs;
pub mod maintenance_args;
mod models;
mod network;
mod output;
mod planning;
mod preflight;
mod profile;
mod proxy;
mod prune;
mod ready_image;
#[cfg(test)]
mod reference;
mod replay;
mod repository;
mod resume;
mod run;
mod run_owner;
mod runs;
mod sandbox_choice;
mod secret_registry;
mod secrets;
mod selftest;
mod send_command;
mod show;
mod show_steering;
mod steer;
pub mod steer_args;
mod summary;
mod task;
pub mod token_args;
mod tokens;
pub mod trust;
mod unfinished_run;
mod update_prices;
mod usage;

pub use context::Context;
pub use dispatch::main;
pub use error::CliError;
pub use exit::ExitCode;
pub use output::CliOutput;
pub use summary::RunSummary;
