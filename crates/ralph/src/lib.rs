//! The program `ralph`: its command line, its configuration and what it shows on a terminal.
//!
//! - [`cli`] reads the arguments and has one file per command; errors and exit codes are its API.
//! - [`config`] is the one place that reads the environment, `.env`, `ralph.toml` and
//!   `config/models.yaml`.
//! - [`diagnostics_log`] writes `tracing` events, redacted, to a bounded file and to standard error.
//! - [`gate`] joins the gate of a run to its sandboxes.
//! - [`proxy`] is the stand-alone port that adds credentials to requests.
//! - [`terminal`] shows the records of a run to a person, and lets nothing through that a terminal
//!   would obey.
//! - [`tokens`] keeps the credentials of agents and knows whether they hold.
//! - `wire` chooses the concrete providers; no other module names one.
//! - [`clock`] is the machine's time.

pub mod cli;
pub mod clock;
pub mod config;
pub mod diagnostics_log;
pub mod gate;
mod providers;
pub mod proxy;
pub mod terminal;
pub mod tokens;
