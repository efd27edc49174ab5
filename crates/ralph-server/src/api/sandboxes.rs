//! `/sandboxes`: the sandboxes of this machine, and the removal of stale ones.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ralph_app::duration;
use ralph_app::prune::{OrphanPolicy, PruneReport, PruneRequest, prune_sandboxes};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::checks::TestedProvider;
use crate::app_thread::call_app_within;
use crate::context::ServerContext;
use crate::operations::{Operation, OperationKind, until_cancelled};
use crate::problem::Problem;

/// The longest list.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(prune))
}

/// Which sandboxes to remove.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PruneChoice {
    /// Only those of this provider.
    provider: Option<TestedProvider>,
    /// Also those of runs that were not resumed for this long, such as `2d`.
    max_age: Option<String>,
}

/// Lists the sandboxes: those that are stale (`removed`), those that a run needs (`kept`), and those with work whose
/// run has no directory (`orphaned`), which the user adopts or removes. Nothing is removed.
#[utoipa::path(
    get,
    path = "/sandboxes",
    tag = "machine",
    responses((status = 200, body = PruneReport))
)]
async fn list(State(context): State<ServerContext>) -> Result<Json<PruneReport>, Problem> {
    let report = call_app_within(TIMEOUT, move || async move {
        let request = PruneRequest {
            provider: None,
            max_age: None,
            orphans: OrphanPolicy::Keep,
            dry_run: true,
        };
        prune_sandboxes(request, &context.app).await
    });
    Ok(Json(report.await?))
}

/// Starts to remove stale sandboxes. Orphaned ones stay: `/orphans` removes one of them.
#[utoipa::path(
    post,
    path = "/sandboxes/prune",
    tag = "machine",
    request_body = PruneChoice,
    responses(
        (status = 202, body = Operation),
        (status = 422, body = Problem),
        (status = 429, body = Problem)
    )
)]
async fn prune(
    State(context): State<ServerContext>,
    Json(choice): Json<PruneChoice>,
) -> Result<(StatusCode, Json<Operation>), Problem> {
    let max_age = choice.max_age.as_deref().map(duration::parse).transpose();
    let max_age = max_age.map_err(|why| {
        let detail = format!("cannot use `max_age` — {why}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-duration", detail)
    })?;
    let request = PruneRequest {
        provider: choice.provider.map(Into::into),
        max_age,
        orphans: OrphanPolicy::Keep,
        dry_run: false,
    };
    let app = context.app.clone();
    let started =
        context
            .operations
            .start(OperationKind::SandboxCleanup, move |handle| async move {
                let pruned = Box::pin(prune_sandboxes(request, &app));
                let report = until_cancelled(handle.cancelled(), pruned).await?;
                handle.set_result(&report)
            });
    Ok((StatusCode::ACCEPTED, Json(started?)))
}
