//! Works on many runs in one process, and serves them over HTTP and WebSocket.
//!
//! - [`Server`] listens; [`ServeOptions`] are its settings.
//! - [`context`] holds what all requests share.
//! - `api` parses requests, one file per resource, and calls the application layer; `problem` is the
//!   error of every request.
//! - `auth` decides which requests are accepted.
//! - `supervisor` works on runs, `index` finds and lists them, `live` streams their events.
//! - `telemetry` serves metrics.

mod api;
mod app_thread;
mod context;
mod index;
mod options;
mod problem;
mod server;
mod supervisor;

pub use api::openapi;
pub use options::ServeOptions;
pub use server::{Server, ServerAddress};
