//! Tests of `ralph serve` and of commands that use a running server.

mod api_client;
mod crash_loops;
mod demo;
mod endings;
pub(crate) mod fixture;
mod full_disk;
mod handing_over;
mod kills;
mod random;
mod random_commands;
mod serve;
mod tasks;
