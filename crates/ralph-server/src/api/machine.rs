//! The resources of the machine instead of a run.

use axum::Extension;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;

use super::{
    agents, checks, config, cost, disk, fleet, images, issues, lint, models, operations, orphans,
    repositories, sandboxes, scm,
};
use crate::auth::{AccessScope, Caller};
use crate::context::ServerContext;
use crate::problem::Problem;

/// Returns the routes of all resources of the machine.
pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .merge(lint::routes())
        .merge(models::routes())
        .merge(agents::routes())
        .merge(scm::routes())
        .merge(issues::routes())
        .merge(cost::routes())
        .merge(config::routes())
        .merge(fleet::routes())
        .merge(checks::routes())
        .merge(operations::routes())
        .merge(sandboxes::routes())
        .merge(orphans::routes())
        .merge(disk::routes())
        .merge(images::routes())
        .merge(repositories::routes())
        .route_layer(from_fn(require_full_access))
}

/// Refuses share links: they show runs, not the directories, credentials and repositories of the machine.
async fn require_full_access(
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    match caller.scope {
        AccessScope::Full => Ok(next.run(request).await),
        AccessScope::Read => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "read-only",
            "a share link shows runs only",
        )),
    }
}
