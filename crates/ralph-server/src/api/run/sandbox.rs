//! `/runs/{id}/sandbox`: the sandbox of a run.

use axum::Json;
use axum::extract::{Path, State};
use ralph_app::runs::{SandboxDetails, sandbox_details};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(sandbox))
}

/// Returns the state, the isolation, the limits and the disk space of the sandbox.
#[utoipa::path(
    get,
    path = "/runs/{id}/sandbox",
    tag = "workspace",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = SandboxDetails), ReadProblems)
)]
async fn sandbox(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<SandboxDetails>, Problem> {
    let read = context.with_run(id, |run| async move {
        Ok(sandbox_details(&run.dir, &run.state, &run.app)?)
    });
    Ok(Json(read.await?))
}
