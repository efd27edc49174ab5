//! The command line: one file per command, each a function from its arguments and the [`Context`]
//! to an [`ExitCode`] or an [`AppError`](ralph_app::AppError).
//!
//! - `command_line` lists the commands, whose arguments are defined in their files;
//!   `argument_order` moves the command to the front, `usage` shortens clap's errors to one line.
//! - [`main`] parses the arguments before it reads the environment, so that `--help` is fast.
//! - [`CliOutput`] prints, [`ExitCode`] is for scripts, `questions` asks on a terminal.
//! - `askpass` is the program that git starts for a credential, instead of a command.
//! - `checks` is the output of `preflight` and `selftest`.

mod adopt;
mod allow;
mod answer;
mod argument_order;
mod askpass;
mod attach;
mod audit;
mod budget_args;
mod checks;
mod command_line;
mod complete;
mod completions;
mod config;
mod context;
mod continue_run;
mod cost;
mod debug;
mod demo;
mod detach;
mod diagnose;
mod diff;
mod discard;
mod dispatch;
mod drive;
mod exit;
mod export;
mod gc;
mod hand_over;
mod image;
mod init;
mod issue;
mod lint;
mod logs;
mod merge;
mod mode;
mod models;
mod output;
mod pr;
mod preflight;
mod profile;
mod proxy;
mod prune;
mod questions;
#[cfg(test)]
mod reference;
mod reindex;
mod replay;
mod resume;
mod rm;
mod run;
mod run_arg;
mod runs;
mod scm;
mod seed_flags;
mod selftest;
mod serve;
mod show;
mod show_iteration;
mod show_steering;
mod signals;
mod steer;
mod task;
mod tokens;
mod top;
mod trust;
mod update_prices;
mod usage;

pub use context::Context;
pub use dispatch::main;
pub use exit::ExitCode;
pub use output::CliOutput;
