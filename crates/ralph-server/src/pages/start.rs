//! `/`: the start page of a build without a dashboard.

use axum::http::StatusCode;
use axum::response::Response;

use super::html::page_response;

/// Returns the start page.
pub(super) fn page() -> Response {
    page_response(StatusCode::OK, "ralph", include_str!("start.html"))
}
