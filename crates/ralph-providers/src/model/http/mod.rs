//! Models behind an HTTP API, named as LiteLLM names them: `zai/glm-4.7`, `openai/gpt-5`.
//!
//! [`Endpoint::of`] looks a model up in the table of providers: how it is talked to, where it usually
//! is, which variables hold its address and its key. The caller reads these variables and makes an
//! [`HttpModel`] of them; nothing here looks at the environment.
//!
//! The way of a question: `parameters` says what is sent, and learns what a model refuses; `wire` writes
//! the body and reads the answer of each of the four ways to talk, `body` finds out its form, `sse` cuts a
//! stream into events, `answer` collects them. What is no answer goes through `refusal`, which finds out
//! whether waiting helps, with the help of `waits`, and which setting to change, with the help of `fixes` and
//! `certificate`. One call is one question: whoever calls again counts again.

mod address;
mod answer;
mod body;
mod certificate;
mod client;
mod connection;
mod endpoint;
mod fixes;
mod parameters;
mod providers;
mod refusal;
mod settings;
mod sse;
mod waits;
mod wire;

pub use address::origin;
pub use client::HttpModel;
pub(crate) use connection::plain_client;
pub use endpoint::{Endpoint, EndpointError};
pub use settings::{Credential, HttpSettings, Network, SettingsError, Timeouts};
