//! `ralph selftest`: makes a real sandbox on this machine, tries out what a run relies on, and leaves
//! nothing behind.
//!
//! - `command` chooses the provider and sums up; `docker` and `local` are the checks of each.
//! - `account` is the agent that is tried out with its credential, `gateway` the gate that it logs in
//!   through, `auth` lets it do that, and `upstream` answers instead of its provider.
//! - `session` is the sandbox that is tried out; `basics` are the checks that every provider passes,
//!   `walls` those of a provider that isolates.

mod account;
mod auth;
mod basics;
mod command;
mod docker;
mod fake_provider;
mod gate;
mod image;
mod isolation;
mod local;
mod session;

pub(super) use command::run;
pub(super) use image::load_project_config;
