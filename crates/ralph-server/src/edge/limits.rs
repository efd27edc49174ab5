//! The limits of a request, and the check of those that its head can exceed.

use std::time::Duration;

use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::problem::Problem;

/// The most connections at a time; others wait until one ends.
pub(super) const MAX_CONNECTIONS: usize = 4096;
/// The time for a TLS handshake, and for the headers of a request.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// The time for the body of a request.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// The time for the response to begin; images that a run needs may be built in it.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_mins(30);
/// The time for open requests when the server stops.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The size of a body: a file of 5 MiB as JSON.
pub(super) const MAX_BODY_BYTES: usize = 8 << 20;
/// The headers of a request that hyper accepts. It answers larger ones itself, without a body.
pub(super) const MAX_READ_HEADER_BYTES: usize = 256 << 10;
pub(super) const MAX_READ_HEADERS: usize = 512;

/// The size of all headers.
const MAX_HEADER_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 100;
/// The size of path and query.
const MAX_URI_BYTES: usize = 8 << 10;

/// Checks the size of a request's head.
pub(super) fn check_head(parts: &Parts) -> Result<(), Problem> {
    let uri = parts.uri.path_and_query();
    if uri.is_some_and(|uri| uri.as_str().len() > MAX_URI_BYTES) {
        return Err(Problem::new(
            StatusCode::URI_TOO_LONG,
            "uri-too-long",
            format!("path and query have more than {MAX_URI_BYTES} bytes"),
        ));
    }
    let headers = parts.headers.iter();
    let bytes: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    if bytes > MAX_HEADER_BYTES || parts.headers.len() > MAX_HEADERS {
        return Err(Problem::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "headers-too-large",
            format!(
                "there are more than {MAX_HEADERS} headers or {MAX_HEADER_BYTES} bytes of them"
            ),
        ));
    }
    Ok(())
}
