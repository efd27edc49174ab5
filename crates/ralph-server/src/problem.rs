//! The error of every request, as problem details (RFC 9457).
//!
//! The edge of the server adds the id of the request, and turns the errors of the framework into
//! problems.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ralph_app::{AppError, ErrorDetails, ErrorKind};
use ralph_core::lint::LintFinding;
use serde::Serialize;
use utoipa::ToSchema;

use crate::supervisor::StartQuestion;

/// The credential of programs, which a response with the status 401 names.
pub(crate) const AUTHENTICATION_SCHEME: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"ralph\"");

/// The content type of problem details.
pub(crate) const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

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
    /// The linter's findings in a rejected task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<LintFinding>,
    /// The difference between the present text and the one that was sent, after a failed condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
    /// The field of the request that is invalid, or that answers the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The question that the request does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<Box<StartQuestion>>,
    /// The id of the request, which is also in the diagnostics log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) request_id: String,
    /// When to try again.
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
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
            findings: Vec::new(),
            diff: None,
            field: None,
            question: None,
            request_id: String::new(),
            retry_after: None,
        }
    }

    /// Adds the field of the request.
    #[must_use]
    pub(crate) fn with_field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// Adds when to try again.
    #[must_use]
    pub(crate) fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Returns the status code of the response.
    pub(crate) fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Creates the problem of a request that another service had to answer.
    pub(crate) fn of_service(error: AppError) -> Self {
        let is_runtime = error.kind == ErrorKind::Runtime;
        let problem = Self::from(error);
        if !is_runtime {
            return problem;
        }
        let Self { detail, hint, .. } = problem;
        Self::new(StatusCode::BAD_GATEWAY, "service-failed", detail).with_hint(hint)
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
            ErrorKind::Refused => (StatusCode::CONFLICT, "refused"),
            ErrorKind::Runtime | ErrorKind::Interrupted => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed")
            }
        };
        let detail = if error.why.is_empty() {
            error.what
        } else {
            format!("{} — {}", error.what, error.why)
        };
        let findings = match *error.details {
            ErrorDetails::Findings { findings, .. } => findings,
            ErrorDetails::None | ErrorDetails::BuildLog(_) | ErrorDetails::Others(_) => Vec::new(),
        };
        Self {
            findings,
            ..Self::new(status, kind, detail).with_hint(error.fix)
        }
    }
}

impl IntoResponse for Problem {
    /// The edge of the server replaces the body, which has no id of the request yet.
    fn into_response(self) -> Response {
        let mut response = (self.status_code(), Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, wait.as_secs().max(1).into());
        }
        if self.status == StatusCode::UNAUTHORIZED.as_u16() {
            headers.insert(header::WWW_AUTHENTICATE, AUTHENTICATION_SCHEME);
        }
        response.extensions_mut().insert(self);
        response
    }
}
