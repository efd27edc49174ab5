//! Image tests against the real Docker Engine.
//!
//! The tests need a Docker Engine with the image `ralph-base:bookworm`, which `scripts/engine`
//! provides. Without one they fail; `RALPH_TEST_NO_DOCKER=1` skips them with a message. Every
//! object created by a test has a unique name and is removed at its end.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose preparations fail should fail there"
)]

mod bases;
mod builds;
mod fixture;
mod projects;
mod pulls;
mod registry;
