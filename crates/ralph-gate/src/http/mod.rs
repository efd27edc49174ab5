//! HTTP through the gate: the proxy, plain requests, tunnels, and TLS that is opened.
//!
//! - `serve` reads requests from a connection, no longer than an `alarm` allows; `target` finds out who one is for.
//! - `forward` sends a request on and its answer back, over `pool`; `line` is the quicker way for
//!   requests that are there as a whole, with a `nudge` for its parts.
//! - `tunnel` carries what follows a `CONNECT`; `https` what arrives at port 443.
//! - `refusal` is what a sandbox reads when it may not; `body` what counts as it flows.

mod alarm;
mod body;
mod fields;
mod foreign;
mod forward;
mod https;
mod line;
mod nudge;
mod pool;
mod refusal;
mod serve;
mod target;
mod tunnel;

pub(crate) use body::{Body, BoxError, drain, full, outgoing};
pub(crate) use fields::strip_hop_by_hop;
pub(crate) use forward::unanswered;
pub(crate) use https::serve as serve_https;
pub(crate) use line::{Answer, Lines, Place};
pub(crate) use pool::{Client, Connector, client, dial_error};
pub(crate) use refusal::{HEADER, Refusal, text_response};
pub(crate) use serve::{Service, connection, serve_http, serve_proxy};
