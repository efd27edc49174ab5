//! `/runs/{id}/iterations`: a summary of each iteration, and the files of one.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_app::results::{
    IterationReport, IterationSummary, TextLimit, iteration_report, iteration_summaries,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;
use crate::run_access::RunAccess;

/// How much of each file the description of an iteration contains.
const SECTION_LIMIT: TextLimit = TextLimit {
    bytes: 64 << 10,
    lines: 2_000,
};

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new()
        .routes(routes!(iterations))
        .routes(routes!(iteration))
}

/// The iterations of a run.
#[derive(Debug, Serialize, ToSchema)]
struct IterationList {
    /// In order.
    iterations: Vec<IterationSummary>,
}

/// Returns a summary of every iteration: cost, tests, duration, loop score with its evidence.
#[utoipa::path(
    get,
    path = "/runs/{id}/iterations",
    tag = "iterations",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = 200, body = IterationList), ReadProblems)
)]
async fn iterations(
    State(context): State<ServerContext>,
    Path(id): Path<String>,
) -> Result<Json<IterationList>, Problem> {
    let read = context.with_run(id, |run| async move {
        let iterations = iteration_summaries(&run.dir)?;
        Ok(IterationList { iterations })
    });
    Ok(Json(read.await?))
}

/// Returns the files of an iteration in a readable form, each up to 64 KiB and 2,000 lines.
#[utoipa::path(
    get,
    path = "/runs/{id}/iterations/{number}",
    tag = "iterations",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("number" = u32, Path, description = "Counted from 1."),
    ),
    responses((status = 200, body = IterationReport), ReadProblems)
)]
async fn iteration(
    State(context): State<ServerContext>,
    Path((id, number)): Path<(String, u32)>,
) -> Result<Json<IterationReport>, Problem> {
    let read = context.with_run(id, move |run| async move {
        run.require_iteration(number)?;
        Ok(iteration_report(
            &run.dir,
            &run.state,
            number,
            SECTION_LIMIT,
        )?)
    });
    Ok(Json(read.await?))
}

impl RunAccess {
    /// Rejects an iteration that has not started.
    pub(super) fn require_iteration(&self, number: u32) -> Result<(), Problem> {
        if (1..=self.state.iteration).contains(&number) {
            return Ok(());
        }
        let last = self.state.iteration;
        let detail = format!("there is no iteration {number}; the last one is {last}");
        Err(Problem::new(
            StatusCode::NOT_FOUND,
            "unknown-iteration",
            detail,
        ))
    }
}
