//! `GET /queue`: the runs of the server and the order in which they get a worker.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::ServerContext;
use crate::supervisor::QueueReport;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(queue))
}

/// Lists the runs of the server by what they wait for.
#[utoipa::path(get, path = "/queue", tag = "runs", responses((status = 200, body = QueueReport)))]
async fn queue(State(context): State<ServerContext>) -> Json<QueueReport> {
    Json(context.supervisor.queue())
}
