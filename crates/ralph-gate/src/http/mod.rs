//! HTTP through the gate: the proxy, plain requests, tunnels, and TLS that is opened.
//!
//! - `serve` reads requests from a connection, no longer than an `alarm` allows; `target` finds out who one is for.
//! - `forward` sends a request on and its answer back, over `pool`; `line` is the quicker way for
//!   requests that are there as a whole, with a `nudge` for its parts.
//! - `tunnel` carries what follows a `CONNECT`; `https` what arrives at port 443.
//! - `refusal` is what a sandbox reads when it may not; `body` what counts as it flows.

mod body;
mod client;
mod coalescing_waker;
mod connection_pool;
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
pub(crate) use client::{GateHttpClient, GateHttpConnector, find_dial_error, new_client};
pub(crate) use connection_pool::{ConnectionPool, HttpOrigin, UpstreamBody};
pub(crate) use forward::upstream_refusal;
pub(crate) use header_text::header_text;
pub(crate) use hop_by_hop::strip_hop_by_hop;
pub(crate) use https::serve as serve_https;
pub(crate) use refusal::{HttpRefusal, REASON_HEADER, text_response};
pub(crate) use serve::{HandlerFuture, serve_connection, serve_http, serve_proxy};
