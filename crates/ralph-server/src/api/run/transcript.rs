//! `/runs/{id}/iterations/{n}/transcript`: what an agent did, for display.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_app::results::{Transcript, transcript};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem_responses::ReadProblems;
use crate::context::ServerContext;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<ServerContext> {
    OpenApiRouter::new().routes(routes!(agent_transcript))
}

/// Returns the texts, the thinking and the tools of an agent's iteration. `transcript.jsonl` and
/// `transcript.txt` are the file itself.
#[utoipa::path(
    get,
    path = "/runs/{id}/iterations/{number}/transcript",
    tag = "iterations",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("number" = u32, Path, description = "Counted from 1."),
    ),
    responses((status = 200, body = Transcript), ReadProblems)
)]
async fn agent_transcript(
    State(context): State<ServerContext>,
    Path((id, number)): Path<(String, u32)>,
) -> Result<Json<Transcript>, Problem> {
    let read = context.with_run(id, move |run| async move {
        run.require_iteration(number)?;
        transcript(&run.dir, &run.state, number).map_err(|error| {
            let problem = Problem::from(error);
            if problem.status == StatusCode::UNPROCESSABLE_ENTITY.as_u16() {
                let detail = problem.detail;
                return Problem::new(StatusCode::NOT_FOUND, "no-transcript", detail);
            }
            problem
        })
    });
    Ok(Json(read.await?))
}
