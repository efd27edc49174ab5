//! Runs the real program the way people and scripts do.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod follow;
mod holding;
mod looks;
mod project;
mod reading;
mod starting;
mod steering;
mod support;
mod usage;
