//! `/disk`: the disk space of runs, and the removal of old ones.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use ralph_app::duration;
use ralph_app::runs::{GcMode, GcReport, SetupGarbageScope, collect_garbage};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::operations::{Operation, OperationKind};
use crate::problem::Problem;

/// The longest report: it reads the sizes of all files.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The age of finished runs that are removed, if the request names none.
const DEFAULT_AGE: &str = "30d";

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(disk_use))
        .routes(routes!(clean))
}

/// The runs that count as old.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct DiskQuery {
    /// Finished runs whose last change is older than this, such as `12h`; the default is `30d`.
    older_than: Option<String>,
}

/// What to remove.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CleanupRequest {
    /// Finished runs whose last change is older than this, such as `12h`; the default is `30d`.
    older_than: Option<String>,
    /// Whether all installed dependencies that are stored for later sandboxes are removed, too.
    #[serde(default)]
    setup: bool,
}

/// Reports the disk space of each run, and what a cleanup would remove.
#[utoipa::path(
    get,
    path = "/disk",
    tag = "machine",
    params(DiskQuery),
    responses(
        (status = 200, body = GcReport),
        (status = 422, body = Problem)
    )
)]
async fn disk_use(
    State(context): State<ServerContext>,
    Query(query): Query<DiskQuery>,
) -> Result<Json<GcReport>, Problem> {
    let age = parse_age(query.older_than.as_deref())?;
    let report = call_app_within(TIMEOUT, move || async move {
        let scope = SetupGarbageScope::Unused;
        collect_garbage(age, GcMode::DryRun, scope, &context.app).await
    });
    Ok(Json(report.await?))
}

/// Starts to remove old finished runs. The result is a report of what was removed.
#[utoipa::path(
    post,
    path = "/disk/gc",
    tag = "machine",
    request_body = CleanupRequest,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn clean(
    State(context): State<ServerContext>,
    Json(request): Json<CleanupRequest>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let age = parse_age(request.older_than.as_deref())?;
    let scope = if request.setup {
        SetupGarbageScope::All
    } else {
        SetupGarbageScope::Unused
    };
    let app = context.app.clone();
    let started = context
        .operations
        .start(OperationKind::DiskCleanup, move |handle| async move {
            let report = collect_garbage(age, GcMode::Remove, scope, &app).await?;
            handle.set_result(&report)
        });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}

fn parse_age(text: Option<&str>) -> Result<Duration, Problem> {
    duration::parse(text.unwrap_or(DEFAULT_AGE)).map_err(|why| {
        let detail = format!("cannot use `older_than` — {why}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-duration", detail)
    })
}
