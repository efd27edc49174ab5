//! The layer between a front end and the engine: configuration, credentials, providers by name, and
//! planning, preparing, steering and inspecting runs. It uses no terminal and prints nothing.
//!
//! - [`App`] is the entry point: it is created from a [`config::Environment`] and opens everything
//!   else.
//! - [`AppError`] is the error of its operations; a front end maps [`ErrorKind`] to its exit codes.
//! - [`config`] reads the configuration files in layers, [`tokens`] stores the credentials of
//!   agents.
//! - [`providers`] is the only module that names concrete providers.
//! - [`gate`] connects the gate of a run to its sandboxes, [`agent`] chooses the credential of an
//!   agent, [`proxy`] serves the credential port without a sandbox.
//! - [`planning`] completes plans, [`trust`] reviews the proposals of a repository, [`image`]
//!   builds images.
//! - [`runs`] starts, resumes and describes runs, [`steering`] sends them commands, [`follow`]
//!   reads their journals while they grow, [`logs`] reads parts of their logs.
//! - [`new_task`] writes the first version of a task file.
//! - [`issues`] claims issues, runs them and writes the results back.
//! - [`results`] shows, merges and discards the results of a run.
//! - [`scm`] finds the credential of a source host and checks a repository there.
//! - [`server`] locks the state directory for a server and sends requests to it.
//! - [`prune`] removes stale sandboxes, [`checks`] contains preflight and selftest.
//! - [`telemetry`] counts and traces the work of this process, and exports both to a collector.
//! - [`clock`] is the clock of the machine, [`mod@format`] formats numbers for messages, [`duration`]
//!   parses durations.
//! - [`models`] lists and tests model profiles, [`inventory`] lists agents, credentials and repositories.
//! - [`ServerRecord`] is how commands find a running server.
//!
//! A module uses only modules above it in this order: `error`, `server_record`, `clock`, `format`, `tokens`,
//! `typed_hosts`, `config`, `telemetry`, `gate`, `proxy`, `agent`, `providers`, `app`, `follow`, `logs`, `planning`, `trust`, `image`,
//! `prune`, `scm`, `server`, `steering`, `results`, `runs`, `models`, `checks`, `new_task`, `inventory`, `issues`.

pub mod agent;
mod app;
pub mod checks;
pub mod clock;
mod clone_origin;
pub mod config;
pub mod duration;
mod error;
pub mod follow;
pub mod format;
pub mod gate;
pub mod image;
pub mod inventory;
pub mod issues;
pub mod logs;
pub mod models;
pub mod new_task;
pub mod planning;
pub mod providers;
pub mod proxy;
pub mod prune;
pub mod results;
pub mod runs;
pub mod scm;
pub mod server;
mod server_record;
pub mod steering;
pub mod telemetry;
pub mod tokens;
pub mod trust;
mod typed_hosts;

pub use app::App;
pub use error::{AppError, ErrorDetails, ErrorKind};
pub use server_record::ServerRecord;
pub use typed_hosts::TypedHosts;
