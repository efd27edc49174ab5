//! Runs the real program the way people and scripts do.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

#[cfg(target_os = "linux")]
mod crash;
mod follow;
mod looks;
mod reading;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
mod stage;
mod starting;
mod steering;
#[cfg(target_os = "linux")]
mod strace;
mod support;
mod usage;
