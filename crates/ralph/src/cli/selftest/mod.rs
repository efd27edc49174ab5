//! `ralph selftest`: makes a real sandbox on this machine, tries out what a run relies on, and leaves
//! nothing behind.
//!
//! - `command` chooses the provider and sums up; `docker` and `local` are the checks of each.
//! - `session` is the sandbox that is tried out; `basics` are the checks that every provider passes,
//!   `walls` those of a provider that isolates.

mod basics;
mod command;
mod docker;
mod image;
mod local;
mod session;
mod walls;

pub(super) use command::run;
