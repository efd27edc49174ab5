//! Turns every error response into a problem: those of the framework are plain text.

use std::path::PathBuf;

use axum::Json;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, Limited};
use ralph_core::secret::Redactor;

use crate::pages::ErrorPage;
use crate::problem::Problem;

/// The size of an error's text, in bytes.
const MAX_DETAIL_BYTES: usize = 2048;

/// Completes the errors of all requests.
#[derive(Debug)]
pub(super) struct ErrorCompletion {
    pub(super) redactor: Redactor,
    /// Directories that no response names, with their replacement.
    pub(super) directories: Vec<(PathBuf, &'static str)>,
}

impl ErrorCompletion {
    /// Adds the id of the request to an error, and removes secrets and directories from it. Pages and
    /// responses that are no errors stay the same.
    pub(super) async fn complete(&self, response: Response, request_id: &str) -> Response {
        let status = response.status();
        let is_page = response.extensions().get::<ErrorPage>().is_some();
        if is_page || !(status.is_client_error() || status.is_server_error()) {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let problem = match parts.extensions.remove::<Problem>() {
            Some(problem) => problem,
            None => framework_problem(status, body).await,
        };
        let problem = Problem {
            request_id: request_id.to_owned(),
            detail: self.clean(&problem.detail),
            hint: self.clean(&problem.hint),
            ..problem
        };
        if status.is_server_error() {
            tracing::error!(request_id, detail = problem.detail, "a request failed");
        }
        parts.headers.remove(header::CONTENT_LENGTH);
        let body = Json(&problem).into_response().into_body();
        parts
            .headers
            .insert(header::CONTENT_TYPE, crate::problem::PROBLEM_JSON);
        Response::from_parts(parts, body)
    }

    fn clean(&self, text: &str) -> String {
        let mut text = self.redactor.redact(text).into_owned();
        for (directory, replacement) in &self.directories {
            text = text.replace(&*directory.to_string_lossy(), replacement);
        }
        text
    }
}

/// Returns the problem of a response that only has a text.
async fn framework_problem(status: StatusCode, body: Body) -> Problem {
    let text = match Limited::new(body, MAX_DETAIL_BYTES).collect().await {
        Ok(text) => String::from_utf8_lossy(&text.to_bytes()).into_owned(),
        Err(error) => {
            tracing::debug!(%error, "cannot use the text of an error");
            String::new()
        }
    };
    let reason = status.canonical_reason().unwrap_or("Error");
    let detail = match (status, text.trim()) {
        (StatusCode::NOT_FOUND, "") => "there is nothing at this address".to_owned(),
        (StatusCode::METHOD_NOT_ALLOWED, "") => {
            "this address does not support the method".to_owned()
        }
        (_, "") => reason.to_owned(),
        (_, text) => text.to_owned(),
    };
    let kind = reason.to_ascii_lowercase().replace(' ', "-");
    Problem::new(status, &kind, detail)
}
