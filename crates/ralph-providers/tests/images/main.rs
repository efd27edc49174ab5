//! Images against the real Docker Engine.
//!
//! The tests need an engine with the image `ralph-base:bookworm`, which `scripts/engine` provides.
//! Without one they fail; `RALPH_TEST_NO_DOCKER=1` leaves them out and says so. Whatever a test
//! makes has a name of its own and is removed at its end.

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
