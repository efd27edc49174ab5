//! HTTP through the gate: the proxy, plain requests, tunnels and inspected TLS.
//!
//! - `serve` reads requests from a connection, with a `reusable_timer` as the timeout; `target`
//!   determines the endpoint of a request.
//! - `forward` forwards a request over `client`, which reuses its connections.
//! - `tunnel` serves `CONNECT`; `https` serves port 443.
//! - `refusal` formats the errors for the sandbox; `body` counts bytes.

mod body;
mod client;
mod foreign_credential;
mod forward;
mod header_text;
mod hop_by_hop;
mod https;
mod refusal;
mod reusable_timer;
mod serve;
mod target;
mod tunnel;

pub(crate) use body::{BoxError, GateBody, counted_request_body, drain_request, full_body};
pub(crate) use client::{
    GateHttpClient, GateHttpConnector, HttpOrigin, find_dial_error, new_client,
};
pub(crate) use forward::upstream_refusal;
pub(crate) use header_text::header_text;
pub(crate) use hop_by_hop::strip_hop_by_hop;
pub(crate) use https::serve as serve_https;
pub(crate) use refusal::{HttpRefusal, REASON_HEADER, text_response};
pub(crate) use serve::{HandlerFuture, serve_connection, serve_http, serve_proxy};
