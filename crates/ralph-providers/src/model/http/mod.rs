//! Models behind an HTTP API, named as LiteLLM names them: `zai/glm-4.7`, `openai/gpt-5`.
//!
//! [`ModelEndpoint::for_choice`] looks a model up in the table of providers: how it is talked to, where it usually
//! is, which variables hold its address and its key. The caller reads these variables and makes an
//! [`HttpModel`] of them; nothing here looks at the environment.
//!
//! The way of a question: `parameters` says what is sent, and learns what a model refuses; `wire` writes
//! the body and reads the answer of each of the four ways to talk, `body` finds out its form, `sse` cuts a
//! stream into events, `answer` collects them. What is no answer goes through `refusal`, which finds out
//! whether waiting helps, with the help of `waits`, and which setting to change, with the help of `fixes` and
//! `certificate`. One call is one question: whoever calls again counts again.

mod address;
mod body;
mod certificate;
mod client;
mod endpoint;
mod parameters;
mod partial_reply;
mod providers;
mod rejection;
mod request_headers;
mod retry_after;
mod settings;
mod sse;
mod suggested_fix;
mod wire;

pub use crate::http::ProxySettings;
pub use address::origin;
pub use client::HttpModel;
pub use endpoint::{ModelEndpoint, ModelEndpointError};
pub use settings::{ApiCredential, HttpModelSettings, HttpModelSettingsError, ModelTimeouts};
