//! The headers of every response.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The header with the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The policy of responses that are no page: nothing is loaded, and no page embeds them.
const NO_CONTENT_POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers that no handler changes.
const FIXED: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Whether browsers must use HTTPS for this name from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportSecurity {
    Required,
    /// The server has no name of its own; the setting would apply to all ports of `localhost`.
    Unstated,
}

/// Adds the headers to a response. A page has a content policy of its own, and a file that never changes
/// may be cached.
pub(super) fn add_headers(headers: &mut HeaderMap, security: TransportSecurity, request_id: &str) {
    for (name, value) in FIXED {
        let name = HeaderName::from_static(name);
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(NO_CONTENT_POLICY));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if security == TransportSecurity::Required {
        let a_year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, a_year);
    }
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, id);
    }
}
