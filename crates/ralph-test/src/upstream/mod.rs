//! A model provider of the test's own: it speaks the real protocols on loopback and says what the
//! test wrote down.
//!
//! - [`Scenario`] is what it says: [`Step`]s for each [`Api`].
//! - [`FakeUpstream`] is the server; it keeps every [`Recorded`] request.
//! - `messages`, `responses` and `chat` write a step as each protocol does.

mod chat;
mod messages;
mod responses;
mod scenario;
mod server;
mod wire;

#[cfg(test)]
mod tests;

pub use scenario::{FakeUpstreamApi, ScenarioStep, UpstreamScenario};
pub use server::{FakeUpstream, RecordedRequest};
