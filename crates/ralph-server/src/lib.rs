//! Works on many runs in one process, and serves them over HTTP and WebSocket.
//!
//! - [`Server`] listens; [`ServeOptions`] are its settings.
//! - `context` holds what all requests share.
//! - `api` parses requests, one file per resource, and calls the application layer; `problem` is the
//!   error of every request.
//! - `edge` accepts connections and requests, `auth` decides which requests are accepted, `pages` has
//!   the page that signs a browser in.
//! - `supervisor` works on runs, `index` finds and lists them, `live` streams their events.
//! - `operations` are the long ones of the machine, `poller` works on issues, `fleet` follows the unfinished runs.
//! - `telemetry` serves metrics.

mod api;
mod app_thread;
mod auth;
mod context;
mod edge;
mod fleet;
mod index;
mod live;
mod operations;
mod options;
mod pages;
mod poller;
mod problem;
mod run_access;
mod server;
mod server_file;
mod supervisor;
mod telemetry;
mod tls;

pub use api::openapi;
pub use auth::PublicUrl;
pub use index::{ReindexReport, reindex};
pub use options::{ServeOptions, TlsFiles};
pub use pages::has_dashboard;
pub use server::{Server, ServerAddress};
