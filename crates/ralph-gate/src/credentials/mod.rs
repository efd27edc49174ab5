//! The credential port: replaces the sandbox's placeholder token with the real credential, which is
//! sent only to its own host.
//!
//! - `route` defines the host, methods and paths of a credential; `route_builder` creates the
//!   routes of the supported providers.
//! - `placeholder_token` is the token the sandbox uses; `auth` replaces it in a request.
//! - `path` validates the path of a request.
//! - `request_body` reads the body of a model request, `json` and `model_request` parse it once;
//!   `provider_tools` and `unmetered` screen it.
//! - `serve` authorizes requests, `send` sends them, `response` sanitizes the response;
//!   `relayed_body` streams it, and `background_reader` finishes reading it after a disconnect.
//! - `refusal` formats errors as the provider would.

mod auth;
mod background_reader;
mod json;
mod model_request;
mod path;
mod placeholder_token;
mod provider_tools;
mod refusal;
mod relayed_body;
mod request_body;
mod response;
mod route;
mod route_builder;
mod send;
mod serve;
mod telemetry;
mod unmetered;

pub use placeholder_token::PlaceholderToken;
pub use provider_tools::ProviderToolUse;
pub use route::Route;
pub(crate) use route::Routes;
pub use route_builder::RouteError;
pub(crate) use serve::serve;
pub use telemetry::{
    InvalidTelemetryError, TelemetryEncoding, TelemetrySignal, TelemetrySink, TelemetryUpload,
};
pub(crate) use telemetry::{TELEMETRY_PATH, TelemetryIntake};
