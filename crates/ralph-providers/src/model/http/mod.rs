//! Models behind an HTTP API, named as in LiteLLM: `zai/glm-4.7`, `openai/gpt-5`.
//!
//! [`ModelEndpoint::for_choice`] resolves a model through the table of providers: its wire API, its
//! default address, and the variables for its address and key. The caller reads these variables and
//! creates an [`HttpModel`]; nothing here reads the environment.
//!
//! The path of a request: `parameters` selects the parameters and learns which ones a model
//! rejects; `wire` writes the body and parses the reply for each of the four APIs, `body` detects
//! the format, `sse` splits a stream into events, `partial_reply` collects them. Errors go through
//! `rejection`, which decides whether to retry (`retry_after` parses the wait) and which setting to
//! change (`suggested_fix`). One call is one request; retries are the caller's and are counted
//! separately.

mod address;
mod body;
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
pub use settings::{
    ApiCredential, CredentialScheme, HttpModelSettings, HttpModelSettingsError, ModelTimeouts,
};
