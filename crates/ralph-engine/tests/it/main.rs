//! The engine with its environment: agents that are shell scripts in local sandboxes, a gate that
//! only records calls, and users that send commands.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod agent;
mod inspect;
