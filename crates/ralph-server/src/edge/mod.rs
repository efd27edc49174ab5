//! The edge of the server: the path of a request from its connection to its handler and back.
//!
//! - `connections` accepts connections, with limits on their number and on the time for headers; `tls`
//!   encrypts them.
//! - `request_service` checks a request, reads its body, calls the handler and completes the response.
//! - `request_body` reads or discards bodies, `limits` has the limits of all parts of a request.
//! - `response_headers` are on every response; `framework_errors` turns plain errors into problems.

mod connections;
mod framework_errors;
mod limits;
mod request_body;
mod request_service;
mod response_headers;

pub(crate) use connections::{ServerListener, serve_connections};
pub(crate) use request_service::RequestService;
