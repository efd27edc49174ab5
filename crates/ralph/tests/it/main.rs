//! Runs the real program the way people and scripts do.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod bad_input;
mod contract;
mod follow;
mod holding;
mod live_steering;
mod looks;
mod project;
mod reading;
mod repositories;
mod secrets;
mod starting;
mod steering;
mod support;
mod usage;
mod verdicts;
