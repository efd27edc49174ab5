//! The credential port: a sandbox sends a stand-in, the gate sends the real thing, to its own host only.
//!
//! - `route` says which credential is for which host, methods and paths; `kinds` has the usual ones.
//! - `phantom` is the stand-in; `auth` takes it off a request and puts the real one on.
//! - `path` reads the path of a request.
//! - `intake` reads the body of a model request, `json` and `ask` parse it once; `unmetered` screens it.
//! - `serve` decides, `send` sends, `back` makes the answer fit; `relay` is the answer on its way,
//!   `read_on` reads it when its client has left.
//! - `words` are the errors in the provider's own form.

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
mod unmetered;

pub use placeholder_token::PlaceholderToken;
pub use provider_tools::ProviderToolUse;
pub use route::Route;
pub(crate) use route::Routes;
pub use route_builder::RouteError;
pub(crate) use serve::serve;
