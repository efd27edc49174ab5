//! `/scm/check`: checks a repository on its source host.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ralph_app::scm::{ScmCheckReport, check_repository};
use ralph_core::repo_address::RepoAddress;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::directory::app_in;
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::problem::Problem;

/// The longest check.
const TIMEOUT: Duration = Duration::from_mins(2);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(check))
}

/// A repository to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScmCheckRequest {
    /// An https or ssh address, `OWNER/NAME` on github.com, or a path; the default is the directory.
    repo: Option<String>,
    directory: Option<String>,
}

/// Checks that ralph can work with a repository: credential, permissions, state and rate limit.
#[utoipa::path(
    post,
    path = "/scm/check",
    tag = "machine",
    request_body = ScmCheckRequest,
    responses(
        (status = 200, body = ScmCheckReport),
        (status = 422, body = Problem),
        (status = 502, body = Problem)
    )
)]
async fn check(
    State(context): State<ServerContext>,
    Json(request): Json<ScmCheckRequest>,
) -> Result<Json<ScmCheckReport>, Problem> {
    let app = app_in(&context, request.directory.as_deref())?;
    let repo = request.repo.as_deref().map(parse_address).transpose()?;
    let redactor = app.redactor();
    let report = call_app_within(TIMEOUT, move || async move {
        let report = check_repository(repo.as_ref(), &app).await?;
        Ok(report.check_report(&app.redactor()))
    });
    let report = report.await;
    Ok(Json(report.map_err(|error| {
        Problem::of_service(error.redacted(&redactor))
    })?))
}

fn parse_address(text: &str) -> Result<RepoAddress, Problem> {
    RepoAddress::parse(text).map_err(|error| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid-repository",
            error.to_string(),
        )
        .with_hint("name an https or ssh address, `OWNER/NAME`, or a path")
    })
}
