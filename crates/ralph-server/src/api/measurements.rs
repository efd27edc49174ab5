//! `/runs/{id}/measurements`: what charts show about a run.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::index::IterationPoint;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(measurements))
}

/// The measurements of a run.
#[derive(Debug, Serialize, ToSchema)]
struct RunMeasurements {
    /// The finished iterations, in their order.
    iterations: Vec<IterationPoint>,
}

/// Returns cost, loop score, tests and duration of each finished iteration.
#[utoipa::path(
    get,
    path = "/runs/{id}/measurements",
    tag = "runs",
    params(("id" = String, Path, description = "The id of a run.")),
    responses((status = 200, body = RunMeasurements), ReadProblems)
)]
async fn measurements(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<RunMeasurements>, Problem> {
    let dir = context.run_dir(&id)?;
    let iterations = context.index.iterations(dir).await?;
    Ok(Json(RunMeasurements { iterations }))
}
