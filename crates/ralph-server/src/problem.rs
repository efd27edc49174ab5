//! The error of every request, as problem details (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_app::{AppError, ErrorKind};
use serde::Serialize;
use utoipa::ToSchema;

/// The content type of problem details.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Why a request was not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of the problem, stable for programs.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The kind of the problem in words.
    pub(crate) title: String,
    /// The status code of the response.
    pub(crate) status: u16,
    /// What failed, and why.
    pub(crate) detail: String,
    /// What to do; empty if it is obvious.
    pub(crate) hint: String,
    /// The commands that the run's status and mode allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<String>,
}

impl Problem {
    /// Creates a problem of a status.
    pub(crate) fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:ralph:problem:{kind}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            hint: String::new(),
            allowed: Vec::new(),
        }
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        let (status, kind) = match error.kind {
            ErrorKind::Usage => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-request"),
            ErrorKind::TaskRejected => (StatusCode::UNPROCESSABLE_ENTITY, "task-rejected"),
            ErrorKind::RunLost => (StatusCode::CONFLICT, "run-lost"),
            ErrorKind::Runtime | ErrorKind::Interrupted => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed")
            }
        };
        let detail = if error.why.is_empty() {
            error.what
        } else {
            format!("{} — {}", error.what, error.why)
        };
        Self::new(status, kind, detail).with_hint(error.fix)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, PROBLEM_JSON);
        response
    }
}
