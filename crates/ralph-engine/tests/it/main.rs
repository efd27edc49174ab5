//! What the engine does with the world around it: agents that are shell scripts in local sandboxes,
//! a gate that only notes what it is told, and people who leave commands.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod agent;
mod inspect;
