//! A fake model provider that speaks the real protocols on loopback and responds as scripted by the
//! test.
//!
//! - [`UpstreamScenario`] is the script: [`ScenarioStep`]s for each [`FakeUpstreamApi`].
//! - [`FakeUpstream`] is the server; it stores every [`RecordedRequest`].
//! - `messages`, `responses` and `chat` encode a step in each protocol.

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
